package webdelivery

import (
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

// Services describe a call, and package internal/transport carries it out. This file has the service's own rules for
// its requests, and turns the results of transport into those that users see.

const (
	authCookieName   = "authtoken"
	purgePath        = "/cache/purge"
	sessionsPath     = "/sessions"
	transactionsPath = purgewire.TransactionsPath
	listsPath        = "/config/networklists"
)

// Rules of requests whose statuses the service uses in its own way.
var (
	// 303 is the response to an accepted purge (open point 7). 403 means failed authentication (open point 6).
	purgeRules = transport.Rules{Success: []int{http.StatusSeeOther}, Refuse: []int{http.StatusForbidden}}
	// For a transaction, 400 may mean failed authentication or something else (open point 6). The code in the body
	// says how the transaction ended, not whether it could be read.
	transactionRules = transport.Rules{
		Refuse: []int{http.StatusForbidden}, MayRefuse: []int{http.StatusBadRequest},
		NotInEnvelope: []string{"transaction_id", "transaction_response"},
	}
	// 403 means failed authentication for logins, and for other methods of Do on a transaction (open point 6).
	forbiddenRules = transport.Rules{Refuse: []int{http.StatusForbidden}}
)

// call is one request as a service describes it.
type call struct {
	transport.Request

	limited bool   // it needs a purge permit
	id      string // requested id, which the object in the response must have; "": any
}

// describe adds the class of a request and the service's rules for it. Every call of this package is created here,
// also that of Do, so no service can forget a rule.
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

// funnel is the path of every call. Services hold the funnel, not the Client.
type funnel struct {
	base      *address.Base
	transport *transport.Transport
	secrets   *transport.Secrets
	gate      *transport.Gate
	maxBody   int64 // limit in bytes of a response that is read whole
	dialect   Dialect
	service   string // service and customer, with the host in its normal form

	strictTexts bool // see WithStrictTexts
}

// usable refuses a call on a service that no client has created, and a call without a context.
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

// expand checks that a call can be made, and returns its path with these ids.
func (f *funnel) expand(ctx context.Context, template string, ids ...string) (string, error) {
	if err := f.usable(ctx); err != nil {
		return "", err
	}
	return expand(template, ids...)
}

// response is the response to a call that succeeded.
type response struct {
	*transport.Response

	funnel *funnel
	id     string // requested id
}

// send sends a call and returns its response.
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

// resolve returns the path and query below the base of an address from the service or from a caller of Do. If the
// address leads elsewhere, it returns a *ValidationError.
func (f *funnel) resolve(field, address string) (path, query string, err error) {
	path, query, err = f.base.Resolve(field, address)
	return path, query, asValidation(err)
}

// resolveSent resolves an address from the service. If the address holds a secret, the error does not show it,
// because it might show a piece of the secret.
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

// asError turns an error of transport into an *Error or a *ValidationError.
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
		// The error of a failed login has the status of the login's own response.
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
