// Package batch combines the URIs of many callers into few requests. Permits are scarce, but a request may carry any
// number of URIs, so the queue first acquires a permit and then builds the request from everything that is pending. If
// the service refuses a request because of some URIs, the queue splits it until they are found, by host first. Each
// caller gets the outcome of its own URIs.
//
// The package must not depend on HTTP, JSON, or how a request contains a URI, which is left to a [Work]. Its entry
// points are [New], [Queue.Put] and [Queue.Close].
package batch

import (
	"context"
	"errors"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// ErrClosed means that the queue is closed, or that the context of Close ended before all work was done.
var ErrClosed = errors.New("webdelivery: purge queue closed")

// URI is a URI to purge. Equal URIs in a request are sent once.
type URI struct {
	MatchMode, Pattern, Modifier string
	Host                         string // of the pattern, "" if it has none
	Size                         int    // bytes that it takes in a request
}

// Work contains the functions that a queue calls.
type Work struct {
	// Acquire waits for a permit to send one request.
	Acquire func(context.Context) (Permit, error)
	// Send sends one request, and ends its permit. It calls failed for each attempt that it repeats.
	Send func(ctx context.Context, permit Permit, uris []URI, failed func(error)) Response
	// Wait waits for the transaction of an accepted request. If it is nil, a URI is done once it is accepted.
	Wait func(ctx context.Context, receipt any) error
	// Left returns the error for a caller whose context has ended. sent reports whether its URIs were part of a request.
	Left func(ctx context.Context, sent bool) error
	// Undecided returns the error for URIs that the service refused only together with others. alone is the number of
	// URIs of their host that were refused alone, or 0 if the queue stopped searching.
	Undecided func(host string, alone int) error
}

// Options are the limits of a queue.
type Options struct {
	MaxURIs    int // per request
	MaxBytes   int // per request; the URIs of a single caller may exceed it
	MaxPending int // URIs waiting to be sent; further callers block
	UnderWay   int // concurrent requests
}

// Permit is the right to send one request. The queue ends unused permits with the zero time.
type Permit interface {
	End(ctx context.Context, arrived time.Time)
}

// Response is the result of one request.
type Response struct {
	Receipt  any   // returned by Put; comparable, and not nil if Err is nil
	Err      error // nil if the service accepted the request
	Refused  bool  // Err means that the service refused at least one of the URIs
	TooLarge bool  // Err means that the request was too large
	Failed   bool  // Err may be a fault of the service that some of the URIs cause
	Outcome  outcomes.Outcome
}

// Result is the result of one caller.
type Result struct {
	Receipts []any            // from the requests that carried its URIs; nil if none was accepted
	Failures []Failure        // in the order of its URIs
	Outcome  outcomes.Outcome // of all its URIs
}

// Failure is a URI that was refused or may not have been carried out.
type Failure struct {
	URI     URI
	Receipt any // if the service accepted it, but its transaction failed or has not ended
	Err     error
	Outcome outcomes.Outcome
}

// Stats is the state of a queue.
type Stats struct {
	Pending   int           // URIs that are not yet part of a request
	InFlight  int           // URIs of requests that the service has neither accepted nor refused
	Accepted  int           // URIs accepted so far; equal ones in one request count once, as in InFlight and Refused
	Refused   int           // URIs that failed because the service refused them, alone or together with others
	Requests  int           // attempts so far
	OldestAge time.Duration // how long the oldest pending caller has waited; 0 if none is pending
	Failures  int           // failed attempts and permits since the service last accepted or refused a request
	Err       error         // error of the last failure; nil if there is none
	Since     time.Time     // when the first of them failed
}
