package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Version is the version of this module: MAJOR.MINOR.PATCH without a v. The User-Agent header contains it.
const Version = "0.1.0"

// Client calls the service for one customer. Create it with [NewClient]. It never changes. The zero value is not
// usable.
type Client struct {
	// Tasks reads the records of long-running operations: section 4.1 of the service document.
	Tasks *TasksService
	// Purge submits purges and reads their transactions: section 4.4.
	Purge *PurgeService
	// Stats reads security statistics: section 4.3.
	Stats *StatsService
	// NetworkLists manages lists of IP addresses and countries: section 4.6.
	NetworkLists *NetworkListsService
	// Sessions creates sessions: section 4.5.
	Sessions *SessionsService

	conn *conn
}

// NewClient creates a client for one customer of the service at baseURL. It sends nothing. Requests go to
// {baseURL}/{customer}/v1. customer is one path element without slashes or invisible characters; NewClient escapes it.
//
// baseURL is https, or http on a loopback address (see [WithPlainHTTP]). It may have a path, which must not end in the
// customer or in /v1, but no user information, query or fragment. If several options set the same value, the last one
// wins. If arguments or options are invalid, NewClient returns a [*ValidationError] for each, joined on one line.
func NewClient(baseURL, customer string, auth Auth, options ...Option) (*Client, error) {
	s := settings{
		next: transport.NewRoundTripper(), userAgent: "webdelivery-go/" + Version,
		maxBody: 32 << 20, attemptTimeout: 30 * time.Second, idleTimeout: 60 * time.Second,
	}
	_ = configure(&s, []Option{WithRetry(RetryPolicy{}), WithDialect(Dialect{})}) // the defaults are valid
	wrong := configure(&s, options)
	plainHTTP2 := transport.MayPlainHTTP2(s.next)
	for i, wrap := range slices.Backward(s.middlewares) {
		if s.next = wrap(s.next); s.next == nil {
			wrong = join(wrong, invalid("WithMiddleware", "returns nil (number %d)", i+1))
		}
	}
	b, err := address.Parse(baseURL, customer, s.plainHTTP)
	if err = join(asValidation(err), auth.validate(), wrong); err != nil {
		return nil, err
	}
	c := &conn{base: b, service: b.Key(), permits: newPermits(b.Key(), &s), maxBody: s.maxBody, dialect: s.dialect}
	sessions := &SessionsService{c}
	c.transport = transport.New(transport.Config{
		Base: b, Credentials: auth.credentials(sessions.logIn), Next: s.next, PlainHTTP2: plainHTTP2, Policy: transport.Policy(s.retry),
		AttemptTimeout: s.attemptTimeout, IdleTimeout: s.idleTimeout, MaxBody: s.maxBody, UserAgent: s.userAgent, Logger: s.logger,
	})
	c.secrets = c.transport.Secrets()
	tasks := &TasksService{c}
	return &Client{
		Tasks: tasks, Purge: &PurgeService{c}, Stats: newStatsService(c), NetworkLists: &NetworkListsService{c, tasks, lists.Limits{List: maxListEntries, Call: maxUpdateEntries}},
		Sessions: sessions, conn: c,
	}, nil
}

// URL returns the URL that all requests of the client begin with: {baseURL}/{customer}/v1, escaped, without
// credentials.
func (c *Client) URL() string {
	return c.conn.base.String()
}

// NewClientFromEnv creates a client from the environment. It reads WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER,
// WEBDELIVERY_USERNAME, and WEBDELIVERY_PASSWORD_FILE or, without it, WEBDELIVERY_PASSWORD. The file is read here and
// for each attempt, with the time limit of [BasicAuthFunc]; trailing line breaks are ignored. WEBDELIVERY_AUTH is basic or
// session; the default is basic. WEBDELIVERY_DIALECT sets fields of [Dialect], as in
// "StartTimeParam=startime,EntryKey=value"; the option [WithDialect] overrides it.
//
// If a variable is missing, empty or invalid, it returns a [*ValidationError] whose Field is the name of the variable.
func NewClientFromEnv(options ...Option) (*Client, error) {
	var missing problems
	get := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			missing.add(name, "is not set in the environment")
		}
		return value
	}
	baseURL, customer, username := get("WEBDELIVERY_BASE_URL"), get("WEBDELIVERY_CUSTOMER"), get("WEBDELIVERY_USERNAME")
	file, password := os.Getenv("WEBDELIVERY_PASSWORD_FILE"), ""
	if file == "" {
		password = get("WEBDELIVERY_PASSWORD")
	}
	if err := missing.err(); err != nil {
		return nil, err
	}
	mode := authMode(cmp.Or(os.Getenv("WEBDELIVERY_AUTH"), string(modeBasic)))
	if mode != modeBasic && mode != modeSession {
		return nil, invalid("WEBDELIVERY_AUTH", "%q is neither basic nor session", string(mode))
	}
	auth := always(mode, username, cmp.Or(password, "in the file")) // which NewClient cannot check yet
	if file != "" {
		auth.asks, auth.pair = true, func(context.Context) (string, string, error) {
			text, err := os.ReadFile(file) //nolint:gosec // G304: whoever sets the variable chooses the file
			return username, strings.TrimRight(string(text), "\r\n"), err
		}
	}
	dialect, err := dialectOf(os.Getenv("WEBDELIVERY_DIALECT"))
	if err != nil {
		return nil, err
	}
	client, err := NewClient(baseURL, customer, auth, append([]Option{WithDialect(dialect)}, options...)...)
	if wrong, ok := errors.AsType[*ValidationError](err); ok && variables[wrong.Field] != "" {
		return nil, &ValidationError{Field: variables[wrong.Field], Reason: wrong.Reason}
	}
	if file != "" && err == nil {
		if _, _, err := client.conn.transport.Ask(context.Background()); err != nil {
			return nil, invalid("WEBDELIVERY_PASSWORD_FILE", "%v", err)
		}
	}
	return client, err
}

// variables maps the Field of an error of NewClient to the variable that NewClientFromEnv has read.
var variables = map[string]string{
	"base URL": "WEBDELIVERY_BASE_URL", "customer": "WEBDELIVERY_CUSTOMER", "user name": "WEBDELIVERY_USERNAME",
	"password": "WEBDELIVERY_PASSWORD", "user name and password": "WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD",
}

// Do sends any request to the service, with the same credentials, limits, retries and errors as all other calls.
//
// path starts with a slash and is relative to {baseURL}/{customer}/v1, or is a full URL below it. It is escaped, and
// may have a query. in is encoded as the JSON body; pass JSON as a json.RawMessage, and nil for no body. out is a
// pointer that the JSON response is decoded into, as encoding/json does: to a struct of your own, or to a
// json.RawMessage, which gets the whole body; nil reads none.
//
// An HTML page is an error, and so is a code of 400 or more in the body, except in that of a transaction. If a retried
// DELETE gets 404 because an earlier attempt may have succeeded, Do returns nil and leaves out unchanged. If the
// response cannot be decoded, it returns [ErrBadResponse]; the outcome of a write is [OutcomeUnknown] then.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	if !validMethod(method) {
		return invalid("method", "%q is not an HTTP method", method)
	}
	path, query, err := c.conn.resolve("path", path)
	if err != nil {
		return err
	}
	cl := describe("Do "+method, method, path, query)
	if in == nil && cl.limited {
		return invalid("in", "is nil; a purge needs a body (service document, section 2.2)")
	}
	if strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return invalid("path", "its query contains a blank or a control character; escape it")
	}
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return invalid("out", "is not a pointer that the response can be read into; pass &value")
	}
	switch in.(type) {
	case []byte, io.Reader: // encoding/json would send Base64, or {}
		return invalid("in", "is a %T; pass JSON as a json.RawMessage", in)
	case nil:
	default:
		if cl.Body, err = marshalJSON(in); err != nil {
			return err
		}
	}
	r, err := c.conn.send(ctx, cl)
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
	// For null, encoding/json leaves a struct unchanged, as if that were the response.
	if reflect.TypeOf(out).Elem().Kind() == reflect.Struct && string(bytes.TrimSpace(r.Body)) == "null" {
		return r.bad("null instead of an object", nil)
	}
	if err := json.Unmarshal(r.Body, out); err != nil {
		return r.bad("", err)
	}
	return nil
}
