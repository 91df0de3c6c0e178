// Package operations is the one list of what a client can do. Tests that promise something of every operation walk through
// All: the fault matrix, the walks for secrets, hosts and foreign bodies, and the soak.
//
// An entry says which request a method of a client sends, what the fake service needs for it, how it is called, and how it
// is seen at the fake that a write was carried out. What only one test needs stands in that test, keyed by Name. Methods
// finds the methods of a client by reflection, so that a method without an entry fails a test.
//
// The package knows the public names of the SDK and the fake, and nothing of a test. Entry points: All, Methods and
// Fill.
package operations

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Kind is what repeating an operation does, and what was handed out already when a fault comes.
type Kind int

// Kinds, in the order of the columns of docs/reliability.md.
const (
	Reads   Kind = iota // gives one thing
	Pages               // gives the items of one page after the other
	Streams             // gives rows as they arrive
	Deletes             // may be repeated
	Purges              // may be repeated, and needs a permit
	Writes              // must not be repeated
	LogsIn              // gets a session
)

// Operation is one use of one method of a client.
type Operation struct {
	Name    string   // of the method, as Methods spells it: "NetworkLists.AddEntries"
	Variant string   // what is particular of this use; "" for nothing
	Also    []string // other methods that it needs and that are called with it
	Kind    Kind     // of the requests below

	Method   string // of the requests that the operation is about
	Path     string // of these, below the base; "{task}" stands for Use.Task, and so on
	Requests int    // how many these are when all goes well; 0 if that depends on how long things take
	Ahead    int    // how many of them only find out what to ask for
	Before   int    // how many others come first
	Items    int    // how many items or rows it gives in a Service that was filled

	Bodiless bool // its responses have no body
	InOrder  bool // its requests follow each other, so that those before a fault are known
	Resumes  bool // it goes on after a fault in the middle of a response
	Follows  bool // it follows the addresses of next pages
	Shared   bool // its requests go on without a caller who gave up
	Waits    bool // for something that may still come about when the call has failed
	Polls    bool // through an outage, until its context ends

	prepare  func(ctx context.Context, s Service, use *Use) error
	call     func(ctx context.Context, c *webdelivery.Client, use *Use) error
	sequence func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[any, error]
	applied  func(srv *testserver.Server, use *Use) bool
}

// String is the name with the variant.
func (o Operation) String() string { return strings.TrimSpace(o.Name + " " + o.Variant) }

// Pattern is the path as a testserver.Fault takes it, whatever the ids are.
func (o Operation) Pattern() string {
	elements := strings.Split(o.Path, "/")
	for i, element := range elements {
		if strings.HasPrefix(element, "{") {
			elements[i] = "*"
		}
	}
	return strings.Join(elements, "/")
}

// PathOf is the path that a use asks for.
func (o Operation) PathOf(use *Use) string {
	id := strconv.FormatInt(use.Transaction, 10)
	return strings.NewReplacer("{task}", use.Task, "{list}", use.List, "{entry}", use.Entry, "{transaction}", id).Replace(o.Path)
}

// Prepare makes what a call needs at the service.
func (o Operation) Prepare(ctx context.Context, s Service) (*Use, error) {
	use := &Use{Task: s.Task, List: s.List, Now: s.Server.Clock().Now(), Poll: time.Second, Show: func(...any) {}}
	if o.prepare == nil {
		return use, nil
	}
	return use, o.prepare(ctx, s, use)
}

// Call makes the call, and returns how many items or rows it gave. End must be called afterwards.
func (o Operation) Call(ctx context.Context, c *webdelivery.Client, use *Use) (items int, err error) {
	if o.sequence == nil {
		return 0, o.call(ctx, c, use)
	}
	for item, err := range o.sequence(ctx, c, use) {
		if err != nil {
			return items, err
		}
		use.Show(item)
		items++
	}
	return items, nil
}

// Run makes the call and ends what it left running.
func (o Operation) Run(ctx context.Context, c *webdelivery.Client, use *Use) error {
	_, err := o.Call(ctx, c, use)
	if ended := use.End(ctx); ended != nil {
		return errors.Join(err, ended)
	}
	return err
}

// Sequence returns what Call ranges over, with its items in plain sight; nil if the method gives no sequence.
func (o Operation) Sequence(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[any, error] {
	if o.sequence == nil {
		return nil
	}
	return o.sequence(ctx, c, use)
}

// IsSequence tells whether the method gives a sequence.
func (o Operation) IsSequence() bool { return o.sequence != nil }

// Changes tells whether the operation changes something that Applied can see.
func (o Operation) Changes() bool { return o.applied != nil }

// Applied tells whether the service has carried out the change; false if nothing changes.
func (o Operation) Applied(srv *testserver.Server, use *Use) bool {
	return o.applied != nil && o.applied(srv, use)
}

// Service is a fake, and what operations may work on there.
type Service struct {
	Server *testserver.Server
	Client *webdelivery.Client // asks for ids that only the service knows
	Task   string              // that has ended
	List   string              // that operations may change
}

// Use is what one call works on.
type Use struct {
	Task, List, Entry string
	Transaction       int64

	Now  time.Time     // of the service, where statistics end; zero means the time of the process
	Poll time.Duration // the interval of what waits
	Show func(...any)  // gets all that the call returns, except its error, and its options

	end func(context.Context) error
}

// End ends what a call left running.
func (u *Use) End(ctx context.Context) error {
	if u.end == nil {
		return nil
	}
	return u.end(ctx)
}

// shown calls a method that returns one thing, and shows it.
func shown[T any](
	method func(ctx context.Context, c *webdelivery.Client, use *Use) (T, error),
) func(context.Context, *webdelivery.Client, *Use) error {
	return func(ctx context.Context, c *webdelivery.Client, use *Use) error {
		got, err := method(ctx, c, use)
		use.Show(got)
		return err
	}
}

// plain gives the items of a sequence as they are.
func plain[T any](
	all func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[T, error],
) func(context.Context, *webdelivery.Client, *Use) iter.Seq2[any, error] {
	return func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[any, error] {
		items := all(ctx, c, use)
		return func(yield func(any, error) bool) {
			for item, err := range items {
				if !yield(item, err) {
					return
				}
			}
		}
	}
}
