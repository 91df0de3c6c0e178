// Package batch gathers the items of many callers into few requests. There are permits for few requests only, but one
// request may carry any number of items. So the permit comes first, and the request is made of what has gathered
// meanwhile. A request that is refused because of some of its items is split until those stand alone. Each item has a
// fate of its own, whoever asked for it, and the result of a caller is made of the fates of his items.
//
// The package knows items, permits, requests, and transactions that carry requests out. It may know nothing of HTTP, of
// JSON, of purges and of the SDK's public types: what it must know of them are the functions of a [Work]. Its entry
// points are [New], [Queue.Put], [Queue.Close] and [Work].
package batch

import (
	"context"
	"time"
)

// Work is what a queue does with items: functions of the queue's owner. Size and Transaction may be called under a lock,
// so no code of the user's may run in them. In the others it may: Put calls Left and Judge in the caller's goroutine, and
// all else runs in goroutines of the queue's, by Catch.
type Work[Item comparable, Receipt any] struct {
	// Size returns the bytes that an item takes in a request.
	Size func(Item) int
	// Acquire waits for the permit to send one request.
	Acquire func(context.Context) (Permit, error)
	// Send sends one request. If the permit is nil, Send acquires one.
	Send func(context.Context, Permit, []Item) (Receipt, error)
	// Refused reports whether an error of Send means that the request was refused because of at least one of its items.
	Refused func(error) bool
	// Transaction returns the id of the transaction that carries out what was accepted. Wait waits until it has ended. If
	// Wait is nil, a caller's items have ended when they are accepted.
	Transaction func(Receipt) int64
	Wait        func(ctx context.Context, transaction int64) error
	// Judge asks an error for all that the queue must know of it; nil of nil.
	Judge func(error) *Failure
	// Catch calls f, and then done with its error, also if f panics or ends the goroutine.
	Catch func(f func() error, done func(*Failure))
	// Left returns why a caller does not wait any longer whose context has ended.
	Left func(context.Context) error
	// Closed is the error of items that are not sent because of Close. ClosedBy returns the error of something under way
	// that Close has ended.
	Closed   error
	ClosedBy func(error) error
	// Together is the error of items that were refused together with others and not sent alone.
	Together error
	// Report is called with the statistics after each request, also one for which there is no permit, one call at a time and with ever newer statistics. If nil,
	// nothing is reported.
	Report func(Stats)
}

// Options are the limits of a queue.
type Options struct {
	MaxItems   int // of one request, and of one caller
	MaxBytes   int // of the items of one request, and of one caller. A single item may be longer
	MaxPending int // items that wait to be sent; further callers wait for room
	UnderWay   int // requests at once
}

// Permit is the right to send one request.
type Permit interface {
	// Return gives the permit back: nothing was sent.
	Return(context.Context)
}

// Stats is the state of a queue.
type Stats struct {
	Pending  int           // items that wait to be put into a request
	Accepted int           // items that were accepted so far; identical ones of one request count once
	Requests int           // requests so far
	Oldest   time.Duration // how long the oldest of the pending has waited; 0 if there is none
	Failures int           // requests that failed since the last one that was answered, permits that could not be had included
	Err      error         // of the last of these; nil without any
}

// Outcome is what became of something that failed.
type Outcome int

const (
	// Unknown means that nobody knows.
	Unknown Outcome = iota
	// NotApplied means that nothing was carried out.
	NotApplied
	// Applied means that it was carried out.
	Applied
)

// Failure is an error with what the queue must know of it. The methods of an error may be code of the user's, so they are
// asked once, under no lock.
type Failure struct {
	Err     error
	Text    string
	Outcome Outcome
}

// Error says which items of a caller failed.
type Error[Item comparable] struct {
	Items   []Item
	Err     error // why; joined if they failed in several ways
	Outcome Outcome
}

// Error returns the text of Err.
func (e *Error[Item]) Error() string { return e.Err.Error() }

// TooLargeError means that the items of a caller do not fit into one request.
type TooLargeError struct {
	Items int // that differ
	Most  int // of one request
	Bytes int // what they take, if they are not too many
}

// Error says that they are too large.
func (*TooLargeError) Error() string { return "too large for one request" }
