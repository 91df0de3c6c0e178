package redisqueue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// A child is one process of the fleet: this program, started again with these variables. The value of setUpOf is a setUp
// as JSON. The child reads orders from stdin and writes events to stdout, one JSON text per line. When stdin ends, it
// closes its queue and ends.
const (
	roleOf  = "REDISQUEUE_TEST_ROLE"
	setUpOf = "REDISQUEUE_TEST_SETUP"
)

// setUp is what a child must know.
type setUp struct {
	Redis    string        `json:"redis"` // address
	Service  string        `json:"service"`
	Customer string        `json:"customer"`
	Username string        `json:"username"`
	Password string        `json:"password"`
	Lease    time.Duration `json:"lease"`
	// Hold is how long each request to the service waits, after the child has reported that it begins.
	Hold time.Duration `json:"hold"`
	// HoldAfter makes each request wait after its response instead. The child reports only that it has ended.
	HoldAfter bool `json:"hold_after"`
}

// order asks a child for calls, one for each URI, all at the same time.
type order struct {
	Enqueue bool          `json:"enqueue"` // Enqueue instead of Purge
	URIs    []string      `json:"uris"`
	Within  time.Duration `json:"within"` // from the call to the end of its context
	Mark    string        `json:"mark"`   // is added to the URIs of the events, so that callers of the same URI differ
}

// Kinds of events.
const (
	isReady   = "ready"   // the child waits for orders
	requests  = "request" // the child sends a request to the service
	answered  = "answer"  // that request has ended
	hasResult = "result"  // a call has returned
)

// event is what a child reports.
type event struct {
	Kind string `json:"kind"`

	// These fields describe a call that has returned.
	URI     string              `json:"uri"`
	ID      string              `json:"id"` // of Enqueue
	Took    time.Duration       `json:"took"`
	Error   string              `json:"error"`
	Outcome webdelivery.Outcome `json:"outcome"`
	Failed  []string            `json:"failed"`  // patterns of the QueueError
	Matches []string            `json:"matches"` // names of the errors in the error
}

// output writes events.
type output struct {
	mu   sync.Mutex
	json *json.Encoder
}

func (o *output) write(e event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.json.Encode(e) // it fails if the test has ended
}

// runChild is the main function of a child.
func runChild(stdin io.Reader, stdout io.Writer) error {
	var s setUp
	if err := json.Unmarshal([]byte(os.Getenv(setUpOf)), &s); err != nil {
		return err
	}
	out := &output{json: json.NewEncoder(stdout)}
	rdb := redis.NewClient(redisOptions(s.Redis))
	defer rdb.Close()
	if err := rdb.Ping(context.Background()).Err(); err != nil {
		return err
	}
	client, err := webdelivery.NewClient(s.Service, s.Customer, webdelivery.BasicAuth(s.Username, s.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: announcer{s, out}}),
		webdelivery.WithPurgeLimiter(shared(rdb)))
	if err != nil {
		return err
	}
	queue := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme", Lease: s.Lease})
	out.write(event{Kind: isReady})
	var calls sync.WaitGroup
	lines := bufio.NewScanner(stdin)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		for _, uri := range o.URIs {
			calls.Go(func() { out.write(o.call(queue, uri)) })
		}
	}
	calls.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(lines.Err(), queue.Close(ctx))
}

// call makes one call, and measures it.
func (o order) call(queue *redisqueue.Queue, uri string) event {
	ctx, cancel := context.WithTimeout(context.Background(), o.Within)
	defer cancel()
	e, began := event{Kind: hasResult, URI: uri + o.Mark}, time.Now()
	var err error
	if o.Enqueue {
		e.ID, err = queue.Enqueue(ctx, webdelivery.Exact(uri))
	} else {
		_, err = queue.Purge(ctx, webdelivery.Exact(uri))
	}
	e.Took = time.Since(began)
	if err == nil {
		return e
	}
	e.Error, e.Outcome = err.Error(), webdelivery.OutcomeOf(err)
	if q, ok := errors.AsType[*webdelivery.QueueError](err); ok {
		for _, u := range q.URIs {
			e.Failed = append(e.Failed, u.URIPattern)
		}
	}
	if errors.Is(err, webdelivery.ErrBadRequest) {
		e.Matches = append(e.Matches, "ErrBadRequest")
	}
	if _, ok := errors.AsType[*redisqueue.RemoteError](err); ok {
		e.Matches = append(e.Matches, "RemoteError")
	}
	return e
}

func (e event) matches(name string) bool { return slices.Contains(e.Matches, name) }

// announcer is a transport that reports each request, so that a test can kill the process while it has a batch.
type announcer struct {
	setUp setUp
	out   *output
}

func (a announcer) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.setUp.HoldAfter {
		defer func() {
			a.out.write(event{Kind: answered})
			time.Sleep(a.setUp.Hold)
		}()
		return http.DefaultTransport.RoundTrip(r)
	}
	a.out.write(event{Kind: requests})
	defer a.out.write(event{Kind: answered})
	time.Sleep(a.setUp.Hold)
	return http.DefaultTransport.RoundTrip(r)
}
