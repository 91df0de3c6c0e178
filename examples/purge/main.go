// Purge removes content from the caches: any number of URIs, in few requests.
//
//	purge [flags] URI...
//	purge [flags] -file FILE
//	... | purge [flags]
//	git diff --name-only HEAD~1 | purge -base https://www.example.com/
//	purge [-timeout DURATION] [-json] -resume TRANSACTION
//
// A file and standard input have one URI per line. Blank lines and lines that begin with # are skipped. If the writer
// of a pipe is killed, purge cannot tell: the last line may be incomplete, and with -prefix it then purges more.
//
// With -base, the lines are paths of files, as git prints them, and are escaped for a URL. An index.html also purges
// its directory. With -redis or REDIS_URL, all processes with the same Redis share one queue: the one that gets the next
// permit sends the URIs of all of them. Put a password into REDIS_URL, because arguments are not secret.
//
// Standard output gets one line per transaction: its id and its status. Standard error gets one line per URI that
// failed, with the outcome: not applied, or unknown. Purging a URI again does no harm. After a failure that no URI
// causes, such as a service that is down, no more URIs are read.
//
// While it waits, purge says when polls fail, and why; on a terminal it also shows its progress. If -timeout or ^C ends
// a wait, the transaction continues, and the error says how to wait again.
//
// Exit codes:
//
//	0  done
//	1  failed or interrupted, and no transaction succeeded
//	2  wrong usage; nothing was sent
//	3  some transactions succeeded, and something else failed
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
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
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
	options, err := j.connect(ctx)
	if err != nil {
		return err
	}
	service, err := program.Connect(s.Err, options, nil, nil)
	if err != nil {
		return err
	}
	defer service.Close()
	return j.run(ctx, service.Client)
}

// callers is how many lines are in the queue at a time. Each URI has a call of its own, which returns its outcome.
const callers = 5_000

// job is what the command line asks for. It is also the document of -json, with the results.
type job struct {
	s          program.Streams
	lines      *program.Input // nil with -resume
	action     webdelivery.PurgeAction
	match      func(line string) ([]webdelivery.PurgeURI, error)
	redis      string                // URL of Redis, after connect its address; "" without one
	redisFrom  string                // where it is set
	rdb        redis.UniversalClient // nil without Redis
	wait, json bool
	timeout    program.Duration // of the wait; 0 is no limit

	mu           sync.Mutex
	Transactions []*transaction `json:"transactions"`
	Failed       []failure      `json:"failed"`
	Stopped      string         `json:"stopped,omitempty"` // why some URIs were not read
	errs         []error        // all failures; may contain nil
	down         error          // why Redis does not work
}

type transaction struct {
	ID     int64  `json:"id,string"`      // a text, because jq and others round large numbers
	Status string `json:"status"`         // the service's word; SUBMITTED or UNKNOWN before the first poll
	URIs   int    `json:"uris,omitempty"` // 0 with -resume, which does not know it
}

type failure struct {
	URI     string `json:"uri"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
}

func (j *job) run(ctx context.Context, client *webdelivery.Client) error {
	if j.lines != nil {
		j.purge(ctx, client)
	}
	if len(j.Transactions)+len(j.errs) == 0 {
		return program.Misused("nothing to purge; put one URI on each line")
	}
	good := len(j.Transactions)
	if j.wait {
		good = j.waitForAll(ctx, client)
	}
	return program.Ended(good, append(j.errs, j.print())...)
}

// purge reads the lines and hands each URI to a queue.
func (j *job) purge(ctx context.Context, client *webdelivery.Client) {
	queue, err := j.queue(client) // a queue lives until Close
	if err != nil {
		j.stopped(err)
		return
	}
	line := progress{show: j.s.Show}
	watched, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { line.watch(watched) })
	carried := map[int64]int{} // number of URIs of each transaction
	one := func(uri webdelivery.PurgeURI) error {
		line.handOver()
		receipts, err := queue.Purge(ctx, uri)
		line.ended(err == nil)
		if err != nil {
			return j.fail(uri.URIPattern, err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		carried[receipts[0].TransactionID]++
		return nil
	}
	j.stopped(j.lines.Each(ctx, callers, func(line string) error {
		uris, err := j.match(line)
		if err != nil {
			return j.fail(line, err)
		}
		errs := make([]error, len(uris))
		var calls sync.WaitGroup
		for i, uri := range uris {
			calls.Go(func() { errs[i] = one(uri) })
		}
		calls.Wait()
		return errors.Join(errs...)
	}))
	_ = queue.Close(ctx) // every caller has its result
	stop()
	watching.Wait()
	j.s.Show("")
	for _, id := range slices.Sorted(maps.Keys(carried)) {
		j.Transactions = append(j.Transactions, &transaction{id, "SUBMITTED", carried[id]})
	}
}

// stopped records why lines were not read, and once for all URIs that Redis does not work.
func (j *job) stopped(err error) {
	if j.down != nil {
		err = j.noRedis(j.down)
	}
	if err != nil {
		j.Stopped = err.Error()
		j.errs = append(j.errs, err)
	}
}

// inFlags replaces the advice that only a Go program can follow.
var inFlags = strings.NewReplacer("or use Prefix for", "or set -both for both protocols, or -prefix for", "use Prefix", "set -prefix")

// fail records a URI that may have no transaction. It returns the error if other URIs would fail in the same way.
func (j *job) fail(uri string, err error) error {
	outcome := webdelivery.OutcomeOf(err).String()
	if queued, ok := errors.AsType[*webdelivery.QueueError](err); ok && len(queued.Failures) > 0 {
		err = queued.Failures[0].Err // without the URI, which the line has already
	}
	others := err
	for _, only := range []error{webdelivery.ErrInvalid, webdelivery.ErrBadRequest, webdelivery.ErrHostRefused, webdelivery.ErrRefusedTogether} {
		if errors.Is(err, only) {
			others = nil
		}
	}
	if refused, ok := errors.AsType[*webdelivery.ValidationError](err); ok {
		err = errors.New(inFlags.Replace(refused.Reason))
	}
	line := fmt.Errorf("%q: %s: %w", uri, outcome, err)
	j.mu.Lock()
	defer j.mu.Unlock()
	if ofRedis(err) {
		j.down, line = err, fmt.Errorf("%q: %s", uri, outcome)
	}
	j.Failed = append(j.Failed, failure{uri, outcome, err.Error()})
	j.errs = append(j.errs, line)
	return others
}

// waitForAll waits for one transaction after the other. Meanwhile the service carries out all of them.
func (j *job) waitForAll(ctx context.Context, client *webdelivery.Client) (good int) {
	if j.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(j.timeout))
		defer stop()
	}
	for i, t := range j.Transactions {
		failing := 0 // polls in a row
		_, err := client.Purge.Wait(ctx, t.ID, webdelivery.WaitProgress(func(p webdelivery.Progress) {
			t.Status = cmp.Or(p.Status, t.Status) // a first poll that fails has none
			j.s.ShowPoll(program.Bar((100*i+p.Percent)/len(j.Transactions))+" of the caches", p)
			if failing++; p.Err == nil {
				failing = 0
			}
			if failing == 2 && !j.s.ErrTerminal { // a single one does not matter, or ends the wait
				fmt.Fprintf(j.s.Err, "purge: transaction %d: a poll failed again; polling continues: %v\n", t.ID, p.Err)
			}
		}))
		switch {
		case err == nil || ctx.Err() == nil: // done, or nothing to wait for
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			err = fmt.Errorf("transaction %d has not ended after -timeout %s: %w; to wait again: purge -resume %d", t.ID, &j.timeout, err, t.ID)
		default:
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
