package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/purgewire"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// Services describe a call and package internal/transport carries it. Here stand the service's own rules for its requests,
// and here what transport reports becomes what users see.

const (
	authCookieName   = "authtoken"
	purgePath        = "/cache/purge"
	sessionsPath     = "/sessions"
	transactionsPath = purgewire.TransactionsPath
	listsPath        = "/config/networklists"
)

// The rules of the requests that the service treats in its own way.
var (
	// A 303 names the transaction of a purge that has been accepted (open point 7); 403 means failed authentication (open
	// point 6).
	purgeRules = transport.Rules{Success: []int{http.StatusSeeOther}, Refuse: []int{http.StatusForbidden}}
	// Reading a transaction answers 400 for errors with authentication, but also for others (open point 6). Its code says
	// how the transaction ended, not whether it could be read.
	transactionRules = transport.Rules{
		Refuse: []int{http.StatusForbidden}, MayRefuse: []int{http.StatusBadRequest},
		NotInEnvelope: []string{"transaction_id", "transaction_response"},
	}
	// 403 means failed authentication of logins, and of what else Do may send to a transaction (open point 6).
	forbiddenRules = transport.Rules{Refuse: []int{http.StatusForbidden}}
)

// call is one request as a service describes it.
type call struct {
	transport.Request

	limited bool   // it needs a purge permit
	id      string // of what is asked for: an object with another id is another object; "": any
}

// describe gives a request its class and the rules that the service has for it. Every call of this package is made here,
// also that of Do, so no service can forget one.
func describe(method, path, query string) call {
	limited := false
	r := transport.Request{Method: method, Path: path, Query: query, Class: transport.Once}
	switch method {
	case http.MethodGet, http.MethodHead:
		r.Class = transport.Read
	case http.MethodDelete:
		r.Class = transport.Delete
	case http.MethodPost:
		switch path {
		case purgePath:
			limited, r.Class, r.Rules = true, transport.Repeatable, purgeRules
		case sessionsPath:
			r.Class, r.Rules = transport.Login, forbiddenRules
		}
	}
	if strings.HasPrefix(path, transactionsPath) {
		if r.Rules = forbiddenRules; r.Class == transport.Read {
			r.Rules = transactionRules
		}
	}
	return call{Request: r, limited: limited}
}

// funnel is the one way of every call. Services hold it, and never the Client.
type funnel struct {
	base      *address.Base
	transport *transport.Transport
	secrets   *transport.Secrets
	gate      *transport.Gate
	maxBody   int64 // bytes of a response that is read whole
	dialect   Dialect
	service   string // which service and customer, in the one spelling of the host

	strictTexts bool // of statistics
}

// usable refuses what no call can be made with: a service that no client has created, and no context.
func (f *funnel) usable(ctx context.Context) error {
	switch {
	case f == nil:
		return noClient()
	case usercode.NoContext(ctx):
		return invalid("context", "is nil; pass the context of the caller, or context.Background()")
	default:
		return nil
	}
}

func noClient() *ValidationError {
	return invalid("client", "this is a zero value or nil; create a client with NewClient and call its services")
}

// via returns the funnel of a client or service; nil of a nil pointer and of a zero value.
func (c *Client) via() *funnel              { return cmp.Or(c, &Client{}).funnel }
func (s *TasksService) via() *funnel        { return cmp.Or(s, &TasksService{}).funnel }
func (s *PurgeService) via() *funnel        { return cmp.Or(s, &PurgeService{}).funnel }
func (s *StatsService) via() *funnel        { return cmp.Or(s, &StatsService{}).funnel }
func (s *NetworkListsService) via() *funnel { return cmp.Or(s, &NetworkListsService{}).funnel }
func (s *SessionsService) via() *funnel     { return cmp.Or(s, &SessionsService{}).funnel }

// expand checks that a call can be made, and returns its path with these ids.
func (f *funnel) expand(ctx context.Context, template string, ids ...string) (string, error) {
	if err := f.usable(ctx); err != nil {
		return "", err
	}
	return expand(template, ids...)
}

// response is what a call that succeeded brought.
type response struct {
	*transport.Response

	funnel *funnel
	id     string // that was asked for
}

// send carries one call to its end.
func (f *funnel) send(ctx context.Context, cl call) (response, error) {
	if err := f.usable(ctx); err != nil {
		return response{}, err
	}
	if cl.limited {
		cl.Gate = f.gate
	}
	r, err := f.transport.Send(ctx, cl.Request)
	if err != nil {
		return response{}, asError(err)
	}
	return response{r, f, cl.id}, nil
}

// resolve returns the path and query below the base of an address that the service sent, or that the user gave to Do. An
// address that leads elsewhere returns a *ValidationError.
func (f *funnel) resolve(field, address string) (path, query string, err error) {
	path, query, err = f.base.Resolve(field, address)
	return path, query, asValidation(err)
}

// resolveSent resolves an address that the service sent. The refusal of one with a secret in it does not repeat it, as
// what it repeats of it may be a piece of the secret.
func (f *funnel) resolveSent(field, address string) (path, query string, err error) {
	path, query, err = f.resolve(field, address)
	switch {
	case err == nil:
	case len(address) > redact.Most:
		err = invalid(field, "leads astray, and is longer than an address can be")
	case f.secrets.Text(address) != address:
		err = invalid(field, "leads astray, with a credential in it")
	}
	return path, query, err
}

// asError returns the *Error or *ValidationError for an error of transport.
func asError(err error) error {
	if f, ok := err.(*transport.Failure); ok { //nolint:errorlint // one that is wrapped is the cause of another
		return newError(f)
	}
	return asValidation(err)
}

func newError(f *transport.Failure) *Error {
	e := &Error{
		StatusCode: f.Status, Code: f.Code, Method: f.Method, Host: f.Host, Path: f.Path, Description: f.Description, Body: f.Body,
		Header: f.Header, Attempts: f.Attempts, outcome: outcomeOf(f.Outcome), tooFast: f.TooFast, authFailed: f.Unauthorized, cause: f.Cause,
	}
	if login, ok := errors.AsType[*Error](f.Cause); ok && f.Login && f.Status == 0 {
		// A login that failed is reported by its own response.
		e.StatusCode, e.Code, e.Description = login.StatusCode, login.Code, login.Description
		e.authFailed, e.login = login.authFailed, login.login
	}
	return e
}

func outcomeOf(o transport.Outcome) Outcome {
	switch o {
	case transport.Applied:
		return OutcomeApplied
	case transport.NotApplied:
		return OutcomeNotApplied
	default:
		return OutcomeUnknown
	}
}
