// Package batch gathers the items of many callers into few requests. Permits are scarce, but one request may carry any
// number of items. So the queue first acquires a permit, and then builds the request from the items that have gathered
// meanwhile. If the service refuses a request because of some items, the queue splits it until these items are found.
// Each item has its own fate. The result of a caller is computed from the fates of the caller's items.
//
// The package knows items, permits, requests, and transactions that carry requests out. It must not know HTTP, JSON,
// purges or public types of the SDK. The functions of a [Work] know them. Its entry points are [New], [Queue.Put],
// [Queue.Close] and [Work].
package batch

import (
	"context"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Work has the functions of the queue's owner. The queue may call Size and Transaction under a lock, so they must not
// run user code. The others may: Put calls Left and Judge in the caller's goroutine, and all else runs in goroutines of
// the queue, through Catch.
type Work[Item comparable, Receipt any] struct {
	// Size returns the size of an item in a request, in bytes.
	Size func(Item) int
	// Acquire waits for a permit to send one request.
	Acquire func(context.Context) (Permit, error)
	// Send sends one request. If the permit is nil, Send acquires one.
	Send func(context.Context, Permit, []Item) (Receipt, error)
	// Refused reports whether an error of Send means that the request was refused because of at least one of its items.
	Refused func(error) bool
	// Transaction returns the id of the transaction that carries out an accepted request. Wait waits until it has
	// ended. If Wait is nil, an item has ended when it is accepted.
	Transaction func(Receipt) int64
	Wait        func(ctx context.Context, transaction int64) error
	// Judge returns all facts about an error that the queue needs; nil for nil.
	Judge func(error) *Failure
	// Catch calls f. It then calls done with the error of f, even if f panics or ends the goroutine.
	Catch func(f func() error, done func(*Failure))
	// Left returns the error of a caller whose context has ended.
	Left func(context.Context) error
	// Closed is the error of items that are not sent because of Close. ClosedBy returns the error of a request or wait
	// that Close has ended.
	Closed   error
	ClosedBy func(error) error
	// Together is the error of items that were refused together with others and not sent alone.
	Together error
	// Report is called with the newest statistics after requests, also after one that got no permit. Calls do not
	// overlap. If Report is nil, nothing is reported.
	Report func(Stats)
}

// Options are the limits of a queue.
type Options struct {
	MaxItems   int // per request and per caller
	MaxBytes   int // per request and per caller; a single item may be larger
	MaxPending int // items that wait to be sent; further callers wait for room
	UnderWay   int // concurrent requests
}

// Permit is the right to send one request.
type Permit interface {
	// Return returns an unused permit.
	Return(context.Context)
}

// Stats is the state of a queue.
type Stats struct {
	Pending  int           // items that wait to be put into a request
	Accepted int           // items accepted so far; identical ones of one request count once
	Requests int           // requests so far
	Oldest   time.Duration // how long the oldest pending caller has waited; 0 if none is pending
	Failures int           // failed requests and permits that began after the last answered request
	Err      error         // error of the one that began last; nil if there is none
}

// Outcome says whether the service carried out a failed request.
type Outcome = transport.Outcome

// The outcomes.
const (
	Unknown    = transport.Unknown
	NotApplied = transport.NotApplied
	Applied    = transport.Applied
)

// Failure is an error with the facts that the queue needs. The methods of an error may be user code, so they are called
// once, without a lock.
type Failure struct {
	Err     error
	Text    string
	Outcome Outcome
}

// Error has the items of a caller that failed.
type Error[Item comparable] struct {
	Items   []Item
	Err     error // the cause; several causes are joined
	Outcome Outcome
}

// Error returns the text of Err.
func (e *Error[Item]) Error() string { return e.Err.Error() }

// TooLargeError means that the items of a caller do not fit into one request.
type TooLargeError struct {
	Items int // number of different items
	Most  int // largest number of one request
	Bytes int // their size, if they are too large but not too many
}

// Error returns a fixed text.
func (*TooLargeError) Error() string { return "too large for one request" }
