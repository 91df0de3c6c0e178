// Package purge has the command that removes content from the caches.
package purge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

const help = `Remove content from the caches: any number of URIs, in few requests. Give them
as arguments, in a file, or pipe them in, one on each line. With --base, they
are paths of files as git prints them; an index.html also purges its directory.

Standard output has a line for each transaction, standard error one for each
URI that failed, with the outcome: not applied, or unknown. Purging a URI again
does no harm. No more are read after a failure that no URI causes.

With --redis, all processes that name the same Redis or Valkey share one queue.
Put a password into REDIS_URL instead, because arguments are not secret.

-o json prints {"transactions": [{"id", "status", "uris"}], "failed": [{"uri",
"outcome", "error"}], "stopped"}; stopped says why not all was read.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	j := &job{app: app, Transactions: []*transaction{}, Failed: []failure{}, accepted: map[int64]int{}}
	c := &cobra.Command{
		Use: "purge URI...", Short: "Remove content from the caches", Long: help, Args: cobra.ArbitraryArgs, RunE: j.run,
		Example: `  webdelivery purge --wait https://www.example.com/app.css
  webdelivery purge --prefix -f directories.txt
  git diff --name-only HEAD~1 | webdelivery purge --base https://www.example.com/`,
	}
	flags := c.Flags()
	flags.StringVarP(&j.file, "file", "f", "", "`file` with the URIs; - is standard input")
	flags.StringVar(&j.base, "base", "", "`URL` that paths are below, such as https://www.example.com/")
	flags.BoolVar(&j.prefix, "prefix", false, "purge everything that begins with a URI, over http and https")
	flags.BoolVar(&j.both, "both", false, "purge each URI over http and https; URIs then need no protocol")
	flags.BoolVar(&j.expire, "expire", false, "expire instead: caches may serve stale content while the origin is down")
	flags.StringVar(&j.redis, "redis", "", "`URL` such as redis://redis.example.com:6379; default REDIS_URL")
	j.waiting.Flags(flags, "wait until the transactions have ended")
	j.format = cli.Format(c, "table", "json")
	c.AddCommand(status(app))
	return c
}

func status(app *cli.App) *cobra.Command {
	var waiting cli.Waiting
	c := &cobra.Command{
		Use: "status ID...", Short: "Show transactions of purges, or wait for them", Args: cobra.MinimumNArgs(1),
		Long: "Show transactions of purges. With --wait, the exit code is 1 if none of them\nended well, and 3 if some did.",
	}
	waiting.Flags(c.Flags(), "wait until the transactions have ended")
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, ids []string) error {
		all := make([]*transaction, len(ids))
		for i, text := range ids {
			id, err := strconv.ParseUint(text, 10, 63)
			if id == 0 || err != nil {
				return cli.Misused("%q is not the id of a transaction, a number above 0", text)
			}
			all[i] = &transaction{ID: int64(id)}
		}
		client, err := app.Connect()
		if err != nil {
			return err
		}
		good, failed := read(c.Context(), app, client, waiting, all)
		return cli.Ended(good, failed, write(app, *format, all))
	}
	return c
}

// job is a purge. It is also the document of -o json.
type job struct {
	app                  *cli.App
	base, file, redis    string
	prefix, both, expire bool
	waiting              cli.Waiting
	format               *string

	mu           sync.Mutex
	Transactions []*transaction `json:"transactions"`
	Failed       []failure      `json:"failed"`
	Stopped      string         `json:"stopped,omitempty"` // why some URIs were not read
	count        atomic.Int64   // of URIs that were accepted
	accepted     map[int64]int  // how many of them each transaction has
	errs         []error        // failures; may contain nil
	unsent       int            // URIs whose calls ^C has ended before they were sent
}

type failure struct {
	URI     string `json:"uri"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
}

func (j *job) run(c *cobra.Command, args []string) error {
	ctx := c.Context()
	base, err := url.Parse(j.base)
	if j.base != "" && (err != nil || base.Host == "" || !strings.HasPrefix(base.Scheme, "http")) {
		return cli.Misused("--base: want a URL such as https://www.example.com/")
	}
	lines, err := j.app.Lines(args, j.file, "no URIs; give some, or --file, or pipe them in; see webdelivery purge --help")
	if err != nil {
		return err
	}
	client, queue, err := j.connect(ctx)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go j.purge(ctx, queue, lines, done)
	j.show(queue, done)
	_ = queue.Close(ctx) // every caller has its result
	for _, id := range slices.Sorted(maps.Keys(j.accepted)) {
		j.Transactions = append(j.Transactions, &transaction{ID: id, Status: "SUBMITTED", URIs: j.accepted[id]})
	}
	good := len(j.Transactions)
	if j.unsent > 0 {
		j.errs = append(j.errs, fmt.Errorf("interrupted: %d URIs were not sent", j.unsent))
	}
	if good+len(j.errs) == 0 {
		return cli.Misused("nothing to purge; put one URI on each line")
	}
	var failed error
	if j.waiting.Wait {
		good, failed = read(ctx, j.app, client, j.waiting, j.Transactions)
	}
	if *j.format == "json" {
		err = j.app.JSON(j, true)
	} else if len(j.Transactions) > 0 {
		err = write(j.app, *j.format, j.Transactions)
	}
	return cli.Ended(good, append(j.errs, failed, err)...)
}

// purge reads the lines and hands each URI to the queue in a call of its own, which returns its outcome.
func (j *job) purge(ctx context.Context, queue queue, lines iter.Seq2[string, error], done chan<- struct{}) {
	defer close(done)
	var unread error
	calls, reading := errgroup.WithContext(ctx)
	calls.SetLimit(5_000)
	for line, err := range lines {
		if err == nil {
			err = context.Cause(reading) // a call may have failed meanwhile
		}
		if err != nil {
			unread = fmt.Errorf("not all was read: %w", err)
			break
		}
		uris, err := j.uris(line)
		if err != nil {
			_ = j.fail(line, err) // the next line may be right
		}
		for _, uri := range uris {
			calls.Go(func() error {
				receipts, err := queue.Purge(ctx, uri)
				if err != nil {
					return j.fail(uri.URIPattern, err)
				}
				j.count.Add(1)
				j.mu.Lock()
				defer j.mu.Unlock()
				j.accepted[receipts[0].TransactionID]++
				return nil
			})
		}
	}
	_ = calls.Wait() // fail has the errors
	if unread != nil {
		j.Stopped = cli.WithFlags(unread.Error())
		j.errs = append(j.errs, unread)
	}
}

// show shows every second how far the purge is.
func (j *job) show(queue queue, done <-chan struct{}) {
	for seconds := 1; ; seconds++ {
		select {
		case <-done:
			j.app.Show("")
			return
		case <-time.After(time.Second):
		}
		text := fmt.Sprintf("%d s, %d URIs accepted", seconds, j.count.Load())
		if own, ok := queue.(*webdelivery.PurgeQueue); ok {
			if err := own.Stats().Err; err != nil {
				text = fmt.Sprintf("%d s, retrying %v", seconds, err)
			}
		}
		j.app.Show(text)
	}
}

// fail records a URI that may have no transaction. It returns the error if other URIs would fail in the same way.
func (j *job) fail(uri string, err error) error {
	outcome := webdelivery.OutcomeOf(err).String()
	if queued, ok := errors.AsType[*webdelivery.QueueError](err); ok && len(queued.Failures) > 0 {
		err = queued.Failures[0].Err // without the URI, which the line has already
	}
	own := errors.Is(err, webdelivery.ErrInvalid) || errors.Is(err, webdelivery.ErrBadRequest) ||
		errors.Is(err, webdelivery.ErrHostRefused) || errors.Is(err, webdelivery.ErrRefusedTogether)
	if refused, ok := errors.AsType[*webdelivery.ValidationError](err); ok {
		err = errors.New(refused.Reason) // the field is that of a request
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Failed = append(j.Failed, failure{uri, outcome, cli.WithFlags(err.Error())})
	if errors.Is(err, context.Canceled) && outcome == webdelivery.OutcomeNotApplied.String() {
		j.unsent++
		return err
	}
	j.errs = append(j.errs, fmt.Errorf("%q: %s: %w", uri, outcome, err))
	if own {
		return nil
	}
	return err
}

// uris returns the URIs of a line.
func (j *job) uris(line string) (uris []webdelivery.PurgeURI, err error) {
	urls := []string{line}
	if j.base != "" {
		if urls, err = below(j.base, line); err != nil {
			return nil, err
		}
	}
	if j.prefix { // that of a directory would purge its other files
		return []webdelivery.PurgeURI{webdelivery.Prefix(urls[0])}, nil
	}
	for _, u := range urls {
		if j.both {
			u = strings.TrimPrefix(strings.TrimPrefix(u, "https://"), "http://")
			uris = append(uris, webdelivery.Exact("https://"+u), webdelivery.Exact("http://"+u))
		} else {
			uris = append(uris, webdelivery.Exact(u))
		}
	}
	return uris, nil
}

// below returns the URL of a file, and for an index.html that of its directory.
func below(base, name string) (urls []string, err error) {
	if strings.HasPrefix(name, `"`) { // git quotes names with unusual characters as Go does
		name, err = strconv.Unquote(name)
	}
	if err != nil || strings.Contains(name, "://") || strings.Contains(name, "\x00") {
		return nil, &webdelivery.ValidationError{Field: "path", Reason: "is not a path as git prints it; leave out --base for a URL, and -z of git"}
	}
	file, _ := url.JoinPath(base, browsers.Replace((&url.URL{Path: name}).EscapedPath())) // run has checked base
	if directory, isIndex := strings.CutSuffix(file, "/index.html"); isIndex {
		return []string{file, directory + "/"}, nil
	}
	return []string{file}, nil
}

// browsers keeps characters that package url escapes and browsers do not, because a purge compares bytes.
var browsers = strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")")

type queue interface {
	Purge(ctx context.Context, uris ...webdelivery.PurgeURI) ([]*webdelivery.PurgeReceipt, error)
	Close(ctx context.Context) error
}

// connect returns the client, and the queue of this process or, with Redis, that of all, who share a limit as well.
func (j *job) connect(ctx context.Context) (client *webdelivery.Client, queue queue, err error) {
	action := webdelivery.ActionPurge
	if j.expire {
		action = webdelivery.ActionExpire
	}
	switch {
	case j.redis != "" && j.app.Fake():
		return nil, nil, cli.Misused("--fake and --redis: what a fake service gets is not the fleet's")
	case j.redis == "" && !j.app.Fake():
		j.redis = os.Getenv("REDIS_URL")
	}
	if j.redis == "" {
		if client, err = j.app.Connect(); err == nil {
			queue, err = client.Purge.NewQueue(webdelivery.QueueOptions{Action: action})
		}
		return client, queue, err
	}
	logging.Disable() // the command reports what fails
	parsed, err := redis.ParseURL(j.redis)
	if err != nil { // it may contain the password
		return nil, nil, cli.Misused("the URL of Redis cannot be used; want one such as redis://redis.example.com:6379")
	}
	o := redislimit.ClientOptions(parsed.Addr)
	o.Username, o.Password, o.DB, o.TLSConfig = parsed.Username, parsed.Password, parsed.DB, parsed.TLSConfig
	rdb := redis.NewUniversalClient(o)
	if err = rdb.Ping(ctx).Err(); err != nil {
		return nil, nil, cli.Advise(fmt.Errorf("the Redis at %s: %w", parsed.Addr, err),
			"check that Redis or Valkey works there, and the user in its URL, or purge without --redis and REDIS_URL")
	}
	limiter, err := redislimit.New(rdb)
	if err == nil {
		client, err = j.app.Connect(webdelivery.WithSharedLimiter(limiter))
	}
	if err == nil {
		queue, err = redisqueue.New(rdb, client, redisqueue.Options{Action: action})
	}
	return client, queue, err
}

// transaction is a purge that the service has accepted.
type transaction struct {
	ID          int64  `json:"id,string"` // a text, because jq and others round large numbers
	Status      string `json:"status"`    // the service's word, or SUBMITTED
	Progress    int    `json:"progress"`  // percent of the caches
	Description string `json:"description,omitempty"`
	URIs        int    `json:"uris,omitempty"` // 0 is not known
}

// read reads one transaction after the other, and with --wait until it has ended. Meanwhile the service carries out all.
func read(
	ctx context.Context, app *cli.App, client *webdelivery.Client, waiting cli.Waiting, all []*transaction,
) (good int, failed error) {
	ctx, stop := waiting.Context(ctx)
	defer stop()
	get := client.Purge.Status
	if waiting.Wait {
		get = func(ctx context.Context, id int64) (*webdelivery.Transaction, error) {
			return client.Purge.Wait(ctx, id, app.Poll())
		}
	}
	for _, t := range all {
		tx, err := get(ctx, t.ID)
		if bad, ok := errors.AsType[*webdelivery.TransactionError](err); ok {
			tx = bad.Transaction
		} else if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w; to wait again: webdelivery purge status %d --wait", err, context.Cause(ctx), t.ID)
		}
		if tx != nil {
			t.Status, t.Progress, t.Description = tx.Status, tx.PercentReceived, tx.StatusDescription
		}
		if failed = errors.Join(failed, err); err == nil {
			good++
		}
	}
	app.Show("")
	return good, failed
}

// write prints the transactions whose status is known.
func write(app *cli.App, format string, all []*transaction) error {
	known := slices.DeleteFunc(all, func(t *transaction) bool { return t.Status == "" })
	header := []string{"id", "status", "progress", "description"}
	return cli.Print(app, format, header, cli.All(known), func(t *transaction) []string {
		return []string{fmt.Sprint(t.ID), t.Status, fmt.Sprint(t.Progress), t.Description}
	})
}
