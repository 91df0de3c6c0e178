package suite_test

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// internal/suite/operations lists what a client can do. From that list, this file makes the operations of the fault matrix,
// and the steps of a client of any service.

// lastHour queries events of which there are more than its limit.
func lastHour(limit int) webdelivery.EventsQuery {
	return operations.Events(time.Now(), limit)
}

// inReliableService runs a test in a service that has something for every operation.
func inReliableService(t *testing.T, s fixture.Setup, test func(f *fixture.Fixture)) {
	t.Helper()
	s.Server.EventsPerSecond = operations.EventRate
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		operations.Fill(f.Srv, f.Client)
		test(f)
	})
}

// operationOf is one operation of the SDK, prepared for a fault.
type operationOf struct {
	operations.Operation

	login bool // it is the login before the call, by a client of its own
}

// notInMatrix contains the operations that the fault matrix does not describe, and why. The other operations
// have a line for every fault.
var notInMatrix = map[string]string{
	"NetworkLists.Apply": "it searches the list for a lost change and retries it: TestALostAdditionIsAwaited",
}

// operationsOf returns every operation of the fault matrix. The families of statistics share theirs.
func operationsOf() []operationOf {
	var all []operationOf
	for _, op := range operations.Distinct() {
		if op.Name == "Tasks.Get" {
			login := op
			login.Name, login.Kind, login.Method, login.Path = "the login of a session", operations.LogsIn, http.MethodPost, "/sessions"
			all = append(all, operationOf{login, true})
		}
		if notInMatrix[op.String()] == "" {
			all = append(all, operationOf{op, false})
		}
	}
	return all
}

// prepare reads what the call needs, before any fault is added.
func prepare(f *fixture.Fixture, op operationOf) *operations.Use {
	f.Helper()
	service := operations.Service{Server: f.Srv, Client: f.Client, Task: operations.FirstTask, List: operations.FirstList}
	use, err := op.Prepare(f.Context(), service)
	require.NoError(f, err)
	return use
}

// clientOf returns a client of a service that is a function.
func clientOf(
	t testing.TB, auth webdelivery.Auth, answer func(*http.Request) *http.Response, options ...webdelivery.Option,
) *webdelivery.Client {
	t.Helper()
	transport := fixture.RoundTripper(func(r *http.Request) (*http.Response, error) { return answer(r), nil })
	options = append([]webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: transport})}, options...)
	client, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, auth, options...)
	require.NoError(t, err)
	return client
}

var once = webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1})

// step is one operation of a client of a service that may answer anything.
type step struct {
	operations.Operation

	run func(ctx context.Context, c *webdelivery.Client, show func(...any)) error
}

// everyStep returns them. A step passes what the method returns, except its error, to show. If it polls, it does so every
// second, and not for ever.
func everyStep() []step {
	var steps []step
	for _, op := range operations.Distinct() {
		steps = append(steps, step{op, func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			if op.Polls { // for ever if the service never recovers
				bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				ctx = bounded
			}
			return op.Run(ctx, c, &operations.Use{Task: fixture.TaskID, List: fixture.ListID, Entry: "1", Transaction: 1, Poll: time.Second, Show: show})
		}})
		if op.Name == "Stats.Events.All" {
			steps = append(steps, scanning[event](op, "with Scan"), scanning[number](op, "with a Scan that does not fit"))
		}
	}
	return steps
}

// everyNthStep returns every n-th of them. A test of many cases gives each case another share: then every step meets
// every n-th case.
func everyNthStep(n, which int) (steps []step) {
	for i, op := range everyStep() {
		if (i+which)%n == 0 {
			steps = append(steps, op)
		}
	}
	return steps
}

func scanning[T any](op operations.Operation, variant string) step {
	op.Variant = variant
	return step{op, func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
		return drain(webdelivery.Scan[T](c.Stats.Events.All(ctx, lastHour(operations.EventsAsked))), show)
	}}
}

// event fits the columns of everyResponse.
type event struct {
	IP   netip.Addr `stats:"client_ip"`
	Text string     `stats:"client_country_code"`
}

type number struct {
	N int64 `stats:"client_country_code"`
}

func drain[T any](all iter.Seq2[T, error], show func(...any)) error {
	for item, err := range all {
		if err != nil {
			return err
		}
		show(item)
	}
	return nil
}

// onePoll is a context that ends with the first poll.
func onePoll(ctx context.Context) (context.Context, webdelivery.WaitOption) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, webdelivery.WaitProgress(func(webdelivery.Progress) { cancel() })
}
