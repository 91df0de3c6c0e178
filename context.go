package webdelivery

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// What a context tells a call, and what it learns of it. The values of a caller's context never reach a login, which
// serves all callers, nor the requests of a [PurgeQueue], which carry the URIs of several.

// Response describes the last request of a call, for [ContextWithResponse].
type Response struct {
	Operation  string        // the method that sent it, such as "Tasks.Get", or "Do GET"
	StatusCode int           // HTTP status of the last response; 0 if there is none
	Header     http.Header   // of that response, without credentials, as in [Error]
	RequestID  string        // its X-Request-Id or X-Correlation-Id, cleaned and cut; "" if it has none
	Attempts   int           // attempts of the request, including those that sent nothing
	Duration   time.Duration // of all attempts and the waits between them, until the response was read; of a stream, until its first row
}

type responseKey struct{}

// ContextWithResponse returns a context for one call, which writes into r what it knows of its last request, whether
// it succeeds or fails. A method has written r when it returns; a sequence, before it yields the values of a response.
// If nothing could be sent, StatusCode is 0; a call that refuses its arguments does not change r, nor does a
// [PurgeQueue]. Several calls must not share r at the same time.
func ContextWithResponse(ctx context.Context, r *Response) context.Context {
	return context.WithValue(ctx, responseKey{}, r)
}

// branch returns a context for requests in another goroutine, and a function that passes on what they have written. It
// is called in the goroutine of the call, so that nothing is written behind the caller's back.
func branch(ctx context.Context) (of context.Context, join func()) {
	sink, _ := ctx.Value(responseKey{}).(*Response)
	if sink == nil {
		return ctx, func() {}
	}
	var last Response
	return context.WithValue(ctx, responseKey{}, &last), func() {
		if last.Operation != "" {
			*sink = last
		}
	}
}

type headerKey struct{}

// ContextWithHeader returns a context whose calls send these headers, such as traceparent or the number of a ticket,
// with each of their requests, but not with a login or the requests of a [PurgeQueue]. Headers of an earlier
// ContextWithHeader are kept unless they have the same name. For a header that is not the caller's to set, such as one
// that carries credentials, the call returns a [*ValidationError]. What a service repeats of them in its own text is
// not searched for them.
func ContextWithHeader(ctx context.Context, header http.Header) context.Context {
	all := http.Header{}
	earlier, _ := ctx.Value(headerKey{}).(http.Header)
	maps.Copy(all, earlier)
	added := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		key := http.CanonicalHeaderKey(name)
		added[key] = append(added[key], header[name]...)
	}
	maps.Copy(all, added)
	return context.WithValue(ctx, headerKey{}, all)
}

// Headers that a caller must not set, and the beginnings of others.
var (
	reservedHeaders = []string{
		"Authorization", "Connection", "Cookie", "Expect", "Host", "Keep-Alive", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
	}
	reservedPrefixes = []string{"Accept", "Content-", "If-", "Proxy-"}
)

// headerOf returns the headers that the context adds, or an error if the SDK does not send them.
func headerOf(ctx context.Context) (http.Header, error) {
	header, _ := ctx.Value(headerKey{}).(http.Header)
	if header == nil {
		return nil, nil
	}
	var bad problems
	for _, name := range slices.Sorted(maps.Keys(header)) {
		field := fmt.Sprintf("header %q", name)
		switch {
		case slices.Contains(reservedHeaders, name), slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
			bad.add(field, "is not the caller's to set: the SDK sends it, or it changes how a request or response is read")
		case name == "", strings.ContainsFunc(name, notInToken):
			bad.add(field, "is not the name of a header")
		case slices.ContainsFunc(header[name], func(v string) bool { return strings.ContainsFunc(v, address.IsControl) }):
			bad.add(field, "has a value with a control character")
		}
	}
	return header, bad.err()
}

// notInToken reports whether the name of a header cannot contain a character (RFC 9110, section 5.6.2).
func notInToken(r rune) bool {
	return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// validMethod reports whether method is an HTTP method: a token without lower-case letters, as no service knows "post".
func validMethod(method string) bool {
	return method != "" && method == strings.ToUpper(method) && !strings.ContainsFunc(method, notInToken)
}

// withoutCaller hides the values of a caller's context that are about one call.
func withoutCaller(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, responseKey{}, (*Response)(nil))
	return context.WithValue(ctx, headerKey{}, http.Header(nil))
}

// OperationFromContext returns which method of the SDK sends such a request, such as "NetworkLists.AddEntries", or "Do
// GET", and the number of the attempt, from 1. All methods of a family of statistics have its name, such as
// "Stats.WAFTrends", and what other methods use has that of the method itself, such as "NetworkLists.Get". It is for a
// RoundTripper, with the context of its request. A login is "Sessions.Create". For a context that is not of a request,
// it returns "" and 0.
func OperationFromContext(ctx context.Context) (operation string, attempt int) {
	return transport.OperationFromContext(ctx)
}
