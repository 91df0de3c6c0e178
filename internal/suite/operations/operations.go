// Package operations is the only list of the operations of a client. Tests of a promise for every operation iterate
// over All: the fault matrix and the walks for secrets, hosts and foreign bodies.
//
// An entry has the request of a method, and what the fake service needs for it. It can call the method, and
// check on the fake that a write was carried out. Data that only one test needs are in that test, keyed by Name.
// Methods finds the methods of a client by reflection, so that a method without an entry fails a test.
//
// The package uses the public names of the SDK and the fake, and depends on no test. Entry points: All, Distinct,
// Methods, Fill and Events.
package operations

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Kind says whether an operation can be retried, and what the caller has already received when a fault comes.
type Kind int

// Kinds, in the order of the columns of docs/guarantees.md.
const (
	Reads   Kind = iota // returns one value
	Pages               // returns the items of one page after the other
	Streams             // returns rows as they arrive
	Deletes             // may be retried
	Purges              // may be retried, and needs a permit
	Writes              // must not be retried
	LogsIn              // creates a session
)

// Operation is one use of one method of a client.
type Operation struct {
	Name    string   // name of the method, in the form of Methods: "NetworkLists.AddEntries"
	Variant string   // what distinguishes this use of the method; "" if nothing does
	Also    []string // other methods that the operation calls as well
	Kind    Kind     // kind of the requests below

	Method   string // method of the requests that the operation is about
	Path     string // their path below the base; "{task}" stands for Use.Task, and so on
	Requests int    // their number without faults; 0 if it depends on timing
	Ahead    int    // how many of them only prepare the others
	Before   int    // number of other requests that come first
	Items    int    // number of items or rows with a filled Service

	Bodiless bool // its responses have no body
	InOrder  bool // its requests follow each other, so that those before a fault are known
	Resumes  bool // it goes on after a fault in the middle of a response
	Shared   bool // its requests go on after its caller has left
	Waits    bool // it waits for a change that may still happen after the call has failed
	Polls    bool // it polls through an outage, until its context ends

	prepare  func(ctx context.Context, s Service, use *Use) error
	call     func(ctx context.Context, c *webdelivery.Client, use *Use) error
	sequence func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[any, error]
	applied  func(srv *testserver.Server, use *Use) bool
}

// String returns the name and the variant.
func (o Operation) String() string { return strings.TrimSpace(o.Name + " " + o.Variant) }

// Pattern returns the path in the form of a testserver.Fault, for any ids.
func (o Operation) Pattern() string {
	elements := strings.Split(o.Path, "/")
	for i, element := range elements {
		if strings.HasPrefix(element, "{") {
			elements[i] = "*"
		}
	}
	return strings.Join(elements, "/")
}

// PathOf returns the path of the requests of a use.
func (o Operation) PathOf(use *Use) string {
	id := strconv.FormatInt(use.Transaction, 10)
	return strings.NewReplacer("{task}", use.Task, "{list}", use.List, "{entry}", use.Entry, "{transaction}", id).Replace(o.Path)
}

// Prepare creates what a call needs on the service.
func (o Operation) Prepare(ctx context.Context, s Service) (*Use, error) {
	use := &Use{Task: s.Task, List: s.List, Now: s.Server.Clock().Now(), Poll: time.Second, Show: func(...any) {}}
	if o.prepare == nil {
		return use, nil
	}
	return use, o.prepare(ctx, s, use)
}

// Call makes the call, and returns the number of items or rows. Call End afterwards.
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

// Run makes the call, then calls End.
func (o Operation) Run(ctx context.Context, c *webdelivery.Client, use *Use) error {
	_, err := o.Call(ctx, c, use)
	if ended := use.End(ctx); ended != nil {
		return errors.Join(err, ended)
	}
	return err
}

// IsSequence reports whether the method returns a sequence.
func (o Operation) IsSequence() bool { return o.sequence != nil }

// Changes reports whether the operation changes something that Applied can check.
func (o Operation) Changes() bool { return o.applied != nil }

// Applied reports whether the service has carried out the change. If the operation changes nothing, it returns false.
func (o Operation) Applied(srv *testserver.Server, use *Use) bool {
	return o.applied != nil && o.applied(srv, use)
}

// Service is a fake with the objects that operations use.
type Service struct {
	Server *testserver.Server
	Client *webdelivery.Client // a client to find out ids that only the service knows
	Task   string              // a task that has ended
	List   string              // a list that operations may change
}

// Use has the arguments of one call.
type Use struct {
	Task, List, Entry string
	Value             string // of the entry; "" means any address
	Transaction       int64

	Now  time.Time     // time of the service, at which statistics end; zero means the time of the process
	Poll time.Duration // poll interval
	Show func(...any)  // called with the call's options, and with all its results except the error

	end func(context.Context) error
}

// End ends everything that a call has left running.
func (u *Use) End(ctx context.Context) error {
	if u.end == nil {
		return nil
	}
	return u.end(ctx)
}

// reads returns an operation that reads something with one GET.
func reads(name, path string, call func(context.Context, *webdelivery.Client, *Use) error) Operation {
	return Operation{Name: name, Kind: Reads, Method: http.MethodGet, Path: path, Requests: 1, call: call}
}

// shown calls a method that returns one value, and passes the value to Show.
func shown[T any](
	method func(ctx context.Context, c *webdelivery.Client, use *Use) (T, error),
) func(context.Context, *webdelivery.Client, *Use) error {
	return func(ctx context.Context, c *webdelivery.Client, use *Use) error {
		got, err := method(ctx, c, use)
		use.Show(got)
		return err
	}
}

// plain converts a sequence to one with untyped items.
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
