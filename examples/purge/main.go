// Purge takes content out of the caches: any number of URIs, in few requests.
//
//	purge [flags] URI...
//	purge [flags] -file FILE
//	... | purge [flags]
//	purge [-json] -resume TRANSACTION
//
// A file and standard input have one URI a line; blank lines and lines that begin with # are passed over. If the writer of
// a pipe is killed, purge cannot know: the last line may be cut, and -prefix then purges more. Transactions become lines
// on standard output: id and state. Each URI that failed is told on standard error, with what became of it: not applied,
// or unknown. Purging again does no harm. What is no fault of a URI (no reply, say) ends the reading.
//
// Exit codes: 0 done; 1 failed or interrupted, and no transaction went well; 2 used wrongly, and nothing was sent;
// 3 some transactions went well, and something else did not.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("purge", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	j, err := parse(ctx, args, s)
	if err != nil {
		return err
	}
	service, err := program.Connect(s.Err, nil, nil, nil)
	if err != nil {
		return err
	}
	defer service.Close()
	return j.run(ctx, service.Client)
}

// callers is how many URIs wait in the queue at a time, each in a call of its own, which tells what became of it alone.
const callers = 5_000

// job is what the command line asks for, and the document of -json: what became of it.
type job struct {
	s          program.Streams
	uris       *program.Input // nil with -resume
	action     webdelivery.PurgeAction
	match      func(string) webdelivery.PurgeURI
	wait, json bool

	Transactions []*transaction `json:"transactions"`
	Failed       []failure      `json:"failed"`
	Stopped      string         `json:"stopped,omitempty"` // why not all URIs were read
	errs         []error        // all that went wrong; nil among them is nothing
}

type transaction struct {
	ID     int64  `json:"id"`
	Status string `json:"status"`         // the service's word, or SUBMITTED or UNKNOWN when nobody has seen it
	URIs   int    `json:"uris,omitempty"` // not known with -resume
}

type failure struct {
	URI     string `json:"uri"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
}

func (j *job) run(ctx context.Context, client *webdelivery.Client) error {
	if j.uris != nil {
		j.purge(ctx, client)
	}
	if len(j.Transactions)+len(j.errs) == 0 {
		return program.Misused("the input has no URIs: there is nothing to purge; write one a line")
	}
	good := len(j.Transactions)
	if j.wait {
		good = j.waitForAll(ctx, client)
	}
	return program.Ended(good, append(j.errs, j.print())...)
}

// purge hands the URIs to a queue as they are read.
func (j *job) purge(ctx context.Context, client *webdelivery.Client) {
	line := progress{show: j.s.Show}
	queue := client.Purge.NewQueue(webdelivery.QueueOptions{Action: j.action, OnStats: line.report})
	watched, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { line.watch(watched) })
	var mu sync.Mutex
	carried := map[int64]int{} // URIs by transaction
	err := j.uris.Each(ctx, callers, func(uri string) error {
		done := line.handOver()
		receipt, err := queue.Purge(ctx, j.match(uri))
		done()
		mu.Lock()
		defer mu.Unlock()
		if receipt != nil {
			carried[receipt.TransactionID]++
			return nil
		}
		return j.fail(uri, err)
	})
	if err != nil {
		j.Stopped = err.Error()
		j.errs = append(j.errs, err)
	}
	_ = queue.Close(ctx) // every caller has its result
	stop()
	watching.Wait()
	j.s.Show("")
	for _, id := range slices.Sorted(maps.Keys(carried)) {
		j.Transactions = append(j.Transactions, &transaction{id, "SUBMITTED", carried[id]})
	}
}

// fail notes a URI that no transaction is known to carry. It returns an error when others would fare no better.
func (j *job) fail(uri string, err error) error {
	outcome := webdelivery.OutcomeOf(err).String()
	if queued, ok := errors.AsType[*webdelivery.QueueError](err); ok {
		err = queued.Err // which does not repeat the URI
	}
	j.Failed = append(j.Failed, failure{uri, outcome, err.Error()})
	j.errs = append(j.errs, fmt.Errorf("%q: %s: %w", uri, outcome, err))
	if errors.Is(err, webdelivery.ErrInvalid) || errors.Is(err, webdelivery.ErrBadRequest) {
		return nil // this URI is the reason
	}
	return err
}

// waitForAll waits for one transaction after the other: meanwhile the service carries out all of them.
func (j *job) waitForAll(ctx context.Context, client *webdelivery.Client) (good int) {
	for i, t := range j.Transactions {
		_, err := client.Purge.Wait(ctx, t.ID, webdelivery.OnProgress(func(p webdelivery.Progress) {
			t.Status = cmp.Or(p.Status, t.Status) // a first poll that fails has none
			j.s.Show(program.Bar((100*i+p.Percent)/len(j.Transactions)) + " of the caches")
		}))
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w; to wait again: purge -resume %d", err, t.ID)
		}
		if err == nil {
			good++
		}
		j.errs = append(j.errs, err)
	}
	j.s.Show("")
	return good
}

func (j *job) print() error {
	if j.json {
		return json.NewEncoder(j.s.Out).Encode(j)
	}
	for _, t := range j.Transactions {
		if _, err := fmt.Fprintln(j.s.Out, t.ID, t.Status); err != nil {
			return err
		}
	}
	return nil
}
