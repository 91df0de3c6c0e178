// Package batch gathers the URIs of many callers into few requests. Permits are scarce, but one request may carry any
// number of URIs, so the queue first acquires a permit and then builds the request from everything that waits. If the
// service refuses a request because of some URIs, the queue splits it until they are found. Each caller gets the
// outcome of its own URIs.
//
// The package does not know HTTP, JSON, or how a URI is written in a request; the functions of a [Work] do. Its entry
// points are [New], [Queue.Put], [Queue.PutFrom] and [Queue.Close].
package batch

import (
	"context"
	"errors"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// ErrClosed means that the queue is closed, or that a Close ended before the work had.
var ErrClosed = errors.New("webdelivery: purge queue closed")

// ErrRefusedTogether is the error of URIs that were refused together with others and not sent alone.
var ErrRefusedTogether = errors.New("webdelivery: refused together with others and not sent alone; purge it again")

// URI is one URI of a request. Equal URIs of a request are sent once.
type URI struct {
	MatchMode, Pattern, Modifier string
	Size                         int // in a request, in bytes
}

// Work is what a queue needs from its owner.
type Work struct {
	// Acquire waits for a permit to send one request.
	Acquire func(context.Context) (Permit, error)
	// Send sends one request. If the permit is nil, Send acquires one.
	Send func(context.Context, Permit, []URI) Response
	// Wait waits for the transaction of an accepted request. If it is nil, a URI is done when it is accepted.
	Wait func(ctx context.Context, receipt any) error
	// Left returns the error of a caller whose context has ended, before or after its URIs became part of a request.
	Left func(ctx context.Context, sent bool) error
	// Report gets the newest statistics after requests, and after permits that failed. Calls do not overlap. If it is
	// nil, nothing is reported.
	Report func(Stats)
}

// Options are the limits of a queue.
type Options struct {
	MaxURIs    int // per request
	MaxBytes   int // per request; the URIs of a single caller may take more
	MaxPending int // URIs that wait to be sent; further callers wait for room
	UnderWay   int // concurrent requests
}

// Permit is the right to send one request. The queue ends those that it does not use, with the zero time.
type Permit interface {
	End(ctx context.Context, arrived time.Time)
}

// Response is the end of one request.
type Response struct {
	Receipt any   // what Put returns; comparable, and not nil if Err is nil
	Err     error // nil if the service accepted the request
	Refused bool  // Err means that the service refused at least one of the URIs
	Outcome transport.Outcome
}

// Result is the result of one caller.
type Result struct {
	Receipt any // of the request with the last accepted URI; nil if none was accepted
	// Failed has the URIs that failed, and Err says why; several causes are joined. Outcome is that of all URIs of the
	// caller.
	Failed  []URI
	Err     error
	Outcome transport.Outcome
}

// Stats is the state of a queue.
type Stats struct {
	Pending   int           // URIs that are not yet part of a request
	Accepted  int           // URIs accepted so far; equal ones of one request count once
	Requests  int           // requests so far
	OldestAge time.Duration // how long the oldest pending caller has waited; 0 if none is pending
	Failures  int           // failed requests and permits since an answer ended an outage
	Err       error         // error of the one that began last; nil if there is none
}
