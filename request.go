package webdelivery

import (
	"net/http"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Services describe a call, and package internal/transport carries it out. This file has the service's own rules for
// its requests, and turns the results of transport into those that users see.

const (
	authCookieName   = "authtoken"
	purgePath        = "/cache/purge"
	sessionsPath     = "/sessions"
	transactionsPath = "/transactions/"
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
	invalid error  // why it is not sent
}

// describe adds the class of a request and the service's rules for it. Every call of this package, including that of
// Do, is created here, so no service can forget a rule. operation is the method that sends such a request.
func describe(operation, method, path, query string) call {
	limited := false
	r := transport.Request{Operation: operation, Method: method, Path: path, Query: query, Class: transport.Once}
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

// at describes a request to the address of the resource with these ids.
func at(operation, method, template string, ids ...string) call {
	path, err := expand(template, ids...)
	cl := describe(operation, method, path, "")
	cl.invalid = err
	return cl
}

// objectCall describes a GET of one object. The last of the ids is its own.
func objectCall(operation, template, query string, ids ...string) call {
	cl := at(operation, http.MethodGet, template, ids...)
	cl.Query, cl.id = query, ids[len(ids)-1]
	return cl
}

// conn carries out every call. Services hold the conn, not the Client.
type conn struct {
	base      *address.Base
	transport *transport.Transport
	secrets   *transport.Secrets
	permits   *transport.Permits
	maxBody   int64 // limit in bytes of a response that is read whole
	dialect   Dialect
	service   string // service and customer, with the host in its normal form
}

// resolve returns the path and query below the base of an address from the service or from a caller of Do. If the
// address leads elsewhere, it returns a *ValidationError.
func (c *conn) resolve(field, address string) (path, query string, err error) {
	path, query, err = c.base.Resolve(field, address)
	return path, query, asValidation(err)
}
