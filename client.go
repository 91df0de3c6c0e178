package webdelivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Version is the version of this module, as it stands in the User-Agent header: MAJOR.MINOR.PATCH without a v.
const Version = "0.1.0"

// Client drives the service for one customer. [NewClient] creates it. The services of the zero value are nil, and their
// methods return a [*ValidationError], except below Stats. So do all methods if their context is nil. It is safe for
// concurrent use, does not change once it is made, and needs no closing.
type Client struct {
	// Tasks reads the records of long-running operations (service-interface section 4.1).
	Tasks *TasksService
	// Purge submits purges and reads their transactions (service-interface section 4.4).
	Purge *PurgeService
	// Stats reads security statistics (service-interface section 4.3).
	Stats *StatsService
	// NetworkLists keeps lists of IP addresses and countries (service-interface section 4.6).
	NetworkLists *NetworkListsService
	// Sessions makes sessions (service-interface section 4.5).
	Sessions *SessionsService

	funnel *funnel
}

// NewClient makes a client for the service at baseURL and one customer; requests go to {baseURL}/{customer}/v1
// (service-interface, opening lines). The customer's name is one path element without a slash, which is escaped here.
// Nothing is sent before the first call.
//
// The base URL is https, or http on a loopback address (see [WithPlainHTTP]). It may hold a path, but no user
// information, query or fragment, and its path must not end in the customer or in /v1. If several options set the same,
// the later one wins. Invalid arguments and options return a [*ValidationError] that names them.
func NewClient(baseURL, customer string, auth Auth, options ...Option) (*Client, error) {
	s := settings{
		next: transport.NewRoundTripper(), userAgent: "webdelivery-go/" + Version,
		maxBody: 32 << 20, attemptTimeout: 30 * time.Second, idleTimeout: 60 * time.Second,
	}
	zero := []Option{WithRetry(RetryPolicy{}), WithDialect(Dialect{})}
	for i, option := range append(zero, options...) {
		if option == nil {
			return nil, invalid(fmt.Sprintf("options[%d]", i-len(zero)), "is nil; remove it")
		}
		if err := option(&s); err != nil {
			return nil, err
		}
	}
	if err := auth.validate(); err != nil {
		return nil, err
	}
	b, err := address.Parse(baseURL, customer, s.plainHTTP)
	if err != nil {
		return nil, asValidation(err)
	}
	f := &funnel{base: b, service: b.Key(), gate: newGate(b.Key(), s.limiter, s.retry), maxBody: s.maxBody, dialect: s.dialect, strictTexts: s.strictTexts}
	sessions := &SessionsService{f}
	f.transport = transport.New(transport.Config{
		Base: b, Credentials: auth.credentials(sessions.logIn), Next: s.next, Policy: transport.Policy(s.retry),
		AttemptTimeout: s.attemptTimeout, IdleTimeout: s.idleTimeout, MaxBody: s.maxBody, UserAgent: s.userAgent, Logger: s.logger,
		Own: ownError,
	})
	f.secrets = f.transport.Secrets()
	tasks := &TasksService{f}
	return &Client{
		Tasks: tasks, Purge: &PurgeService{f}, Stats: newStatsService(f), NetworkLists: &NetworkListsService{f, tasks},
		Sessions: sessions, funnel: f,
	}, nil
}

// NewClientFromEnv makes a client from the environment: WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER,
// WEBDELIVERY_USERNAME, WEBDELIVERY_PASSWORD, and WEBDELIVERY_AUTH, which is basic (also when unset) or session. A
// variable that is missing, empty or invalid returns a [*ValidationError] whose Field is its name; of several, errors.As
// finds the first. Otherwise it behaves like [NewClient].
func NewClientFromEnv(options ...Option) (*Client, error) {
	var missing problems
	get := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			missing.add(name, "is not set in the environment")
		}
		return value
	}
	baseURL, customer := get("WEBDELIVERY_BASE_URL"), get("WEBDELIVERY_CUSTOMER")
	username, password := get("WEBDELIVERY_USERNAME"), get("WEBDELIVERY_PASSWORD")
	if err := missing.err(); err != nil {
		return nil, err
	}
	auth := BasicAuth(username, password)
	switch mode := os.Getenv("WEBDELIVERY_AUTH"); authMode(mode) {
	case "", modeBasic:
	case modeSession:
		auth = SessionAuth(username, password)
	default:
		return nil, invalid("WEBDELIVERY_AUTH", "%q is neither basic nor session", mode)
	}
	client, err := NewClient(baseURL, customer, auth, options...)
	if wrong, ok := errors.AsType[*ValidationError](err); ok && variables[wrong.Field] != "" {
		return nil, &ValidationError{Field: variables[wrong.Field], Reason: wrong.Reason}
	}
	return client, err
}

// variables are those of NewClientFromEnv, by the field of the error of NewClient that is about them.
var variables = map[string]string{
	"base URL": "WEBDELIVERY_BASE_URL", "customer": "WEBDELIVERY_CUSTOMER", "user name": "WEBDELIVERY_USERNAME",
	"password": "WEBDELIVERY_PASSWORD", "user name and password": "WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD",
}

// Do sends any request of the service that has no method here, through the same funnel as all others: credentials,
// limits, retries, errors. path is relative to {baseURL}/{customer}/v1, begins with a slash, is escaped, and may hold a
// query; an address of the same origin below that base is taken too. in becomes the JSON body, nil sends none; the JSON
// reply is read into out, a pointer, and nil drops it. A *json.RawMessage as out takes the body as it is, also an empty
// one. in and out are not kept.
//
// If the response has a code of 400 or more, Do returns an error, whatever the HTTP status. The code of a transaction is
// the exception, as it tells how the transaction ended. GET, HEAD, DELETE and a POST to /cache/purge are retried after
// faults; every other write only when it certainly was not processed. A POST to /cache/purge waits for a purge permit. A
// DELETE that meets 404 after an attempt that may have worked succeeds and leaves out alone.
//
// A method, path, in or out that makes no sense is a [*ValidationError]. A reply that cannot be read into out is
// [ErrBadReply], and so is null for a struct; of a write the outcome is then [OutcomeUnknown].
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	if err := c.via().usable(ctx); err != nil {
		return err
	}
	if !address.ValidMethod(method) {
		return invalid("method", "%q is no HTTP method", method)
	}
	path, query, err := c.funnel.resolve("path", path)
	if err != nil {
		return err
	}
	cl := describe(method, path, query)
	if in == nil && cl.limited {
		return invalid("in", "is nil; a purge needs a body (service document, section 2.2)")
	}
	if strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return invalid("path", "its query holds a blank or a control character; escape it")
	}
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return invalid("out", "is no pointer to read the reply into")
	}
	if in != nil {
		if cl.Body, err = marshalJSON(in); err != nil {
			return err
		}
	}
	r, err := c.funnel.send(ctx, cl)
	if err != nil || out == nil || r.Gone {
		return err
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = r.Body
		return nil
	}
	if err := r.checkText(); err != nil {
		return err
	}
	// encoding/json leaves a struct as it is for null, which would then pass for a reply.
	if reflect.TypeOf(out).Elem().Kind() == reflect.Struct && string(bytes.TrimSpace(r.Body)) == "null" {
		return r.bad("null in place of an object", nil)
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return r.bad("", err)
	}
	return nil
}
