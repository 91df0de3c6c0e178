package events

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// protocol is how a kind of collector receives events.
type protocol struct {
	flag, path string
	variable   string                          // of the environment, with what identifies this program
	header     func(secret string) http.Header // nil if the secret cannot be used
	body       string                          // of a request, with %s for the events
	between    string                          // two events
	encoder    func(columns []string) encoder
	judge      func(status int, answer []byte) verdict
}

// encoder returns the JSON of an event.
type encoder func(row webdelivery.Row, at time.Time, key string) []byte

// verdict is what an answer means for the events of a request.
type verdict int

const (
	taken   verdict = iota // the collector has them
	refused                // it will never take all of them
	later                  // it may take them later
	never                  // it takes nothing from this program
)

// maxBatch is how many events a request has at most. A collector that wants fewer bytes refuses it, and gets halves.
const maxBatch = 500

// event is an event as a collector receives it.
type event struct {
	json   []byte
	reason string // why it was refused
}

// collector sends events over HTTP. It stores the position only when the collector has acknowledged, or the file of
// rejected events has, all before it.
type collector struct {
	protocol
	*job

	url    *url.URL
	secret http.Header
	encode encoder

	batch    []event
	stored   time.Time
	accepted []event // the last one that was taken; nil if none was
	told     verdict // the last one that the user was told
}

func newCollector(p protocol, address string) (*collector, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http",
		u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, cli.Misused("--%s: want a URL such as https://collector.example.com%s; secrets belong into %s",
			p.flag, p.path, p.variable)
	case strings.Trim(u.Path, "/") == "":
		u.Path = p.path
	}
	secret := p.header(os.Getenv(p.variable))
	switch {
	case secret == nil:
		return nil, cli.Misused("--%s needs %s, which is not set or malformed", p.flag, p.variable)
	case len(secret) > 0 && u.Scheme == "http" && !cli.Loopback(u.Host):
		return nil, cli.Misused("--%s: the network could read %s; use https", p.flag, p.variable)
	}
	return &collector{protocol: p, url: u, secret: secret}, nil
}

func (c *collector) write(ctx context.Context, row webdelivery.Row, at time.Time) error {
	c.batch = append(c.batch, event{json: c.encode(row, at, c.export.Key())})
	if len(c.batch) < maxBatch {
		return nil
	}
	if err := c.flush(ctx, true); err != nil || time.Since(c.stored) < 5*time.Second {
		return err
	}
	return c.store()
}

func (c *collector) commit(ctx context.Context, now bool) error {
	if err := c.flush(ctx, now && !c.ending); err != nil || len(c.batch) > 0 {
		return err
	}
	return c.store()
}

func (c *collector) store() error {
	c.stored = time.Now()
	return c.position.Store(c.export.Cursor())
}

// flush sends the batch. Events are put aside if they are refused alone, and the collector takes a good one right
// before and right after: one that refuses everything is broken, and would fill the file of rejected events with those
// of a day. It then gets them again; at once, or if there is room for more, together with the events that follow. These
// show whether the collector works, if it has taken nothing from this process yet.
func (c *collector) flush(ctx context.Context, wait bool) error {
	worked := false
	for failures := 0; len(c.batch) > 0; failures++ {
		bad, err := c.send(ctx, c.batch)
		if err != nil {
			return err // with the batch, for a last try
		}
		if c.batch = bad; len(bad) == 0 {
			return nil
		}
		refusal := c.batch[0].reason
		if c.accepted != nil {
			if refusal, err = c.post(ctx, c.accepted); err != nil { // it has the same key again
				return err
			}
		}
		works := refusal == ""
		switch {
		case works && worked:
			return c.putAside()
		case !works:
			c.tell(refused, "refuses every event: "+refusal+"; nothing is put aside, trying until it takes one")
			if !wait {
				return nil
			}
			if err := c.pause(ctx, failures, 0); err != nil {
				return err
			}
		}
		worked = works
	}
	return nil
}

// send sends events. If the collector refuses them, it sends each half, and so on, and returns those that are refused
// alone. The collector may thus get others several times, with the same key: it says neither which ones it refuses nor,
// with OTLP, whether it keeps the others.
func (c *collector) send(ctx context.Context, events []event) (bad []event, err error) {
	reason, err := c.post(ctx, events)
	switch half := len(events) / 2; {
	case err != nil:
		return nil, err
	case reason == "":
		c.delivered.Add(int64(len(events)))
		c.accepted = slices.Clone(events[len(events)-1:])
		return nil, nil
	case half == 0:
		return []event{{events[0].json, reason}}, nil
	default:
		first, err := c.send(ctx, events[:half])
		if err != nil {
			return nil, err
		}
		second, err := c.send(ctx, events[half:])
		return append(first, second...), err
	}
}

// post sends events until the collector has taken or refused them. It returns why they were refused, or "". If the
// collector takes nothing from this program, that is an error until it has taken something.
func (c *collector) post(ctx context.Context, events []event) (refusal string, err error) {
	body := c.pack(events)
	for failures := 0; ; failures++ {
		meaning, reason, asked := c.try(ctx, body)
		switch {
		case meaning == taken:
			c.tell(taken, "takes events again")
			return "", nil
		case meaning == refused:
			return reason, nil
		case ctx.Err() != nil || c.ending:
			return "", context.Canceled
		case meaning == never && c.accepted == nil:
			return "", cli.Advise(errors.New(c.url.Host+" refuses all events: "+reason),
				"check "+c.variable+", and the URL of --"+c.flag)
		}
		c.tell(meaning, "takes no events: "+reason+"; trying until it does")
		if err := c.pause(ctx, failures, asked); err != nil {
			return "", err
		}
	}
}

// tell says once what the collector does from now on.
func (c *collector) tell(meaning verdict, text string) {
	if c.told != meaning {
		c.app.Tell("%s %s", c.url.Host, text)
	}
	c.told = meaning
}

// pause waits longer after each failure, and for as long as the collector asks.
func (c *collector) pause(ctx context.Context, failures int, asked time.Duration) error {
	longest := time.Second << min(failures, 6)
	select {
	case <-ctx.Done():
	case <-time.After(max(asked, longest/2+rand.N(longest/2))):
	}
	return ctx.Err()
}

// pack returns the body of a request.
func (p protocol) pack(events []event) []byte {
	var texts [][]byte
	for _, e := range events {
		texts = append(texts, e.json)
	}
	var packed bytes.Buffer // which no write fails to
	w := gzip.NewWriter(&packed)
	_, _ = fmt.Fprintf(w, p.body, bytes.Join(texts, []byte(p.between)))
	_ = w.Close()
	return packed.Bytes()
}

// try sends a request. It returns the reason and how long the collector asks to wait, if it does not take the events.
func (c *collector) try(ctx context.Context, body []byte) (meaning verdict, reason string, asked time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return never, err.Error(), 0
	}
	req.Header = c.secret.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(req) // which follows no redirect
	if err != nil {
		return later, err.Error(), 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return later, err.Error(), 0
	}
	status := resp.StatusCode
	reason = strconv.Itoa(status) + " " + http.StatusText(status)
	if slices.Contains([]int{401, 403, 404}, status) || status/100 == 3 {
		return never, reason, 0
	}
	switch meaning = c.judge(status, answer); {
	case meaning == later && status/100 == 2:
		reason += ", which does not come from a collector"
	case meaning != taken:
		reason += c.quote(answer)
	}
	seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 32) // collectors send no dates
	return meaning, reason, min(time.Duration(seconds)*time.Second, time.Hour)
}

// quote returns the beginning of an answer, unless it repeats the secret.
func (c *collector) quote(answer []byte) string {
	text := strings.ToValidUTF8(string(bytes.TrimSpace(answer[:min(len(answer), 200)])), "")
	for _, values := range c.secret {
		if strings.Contains(string(answer), strings.TrimPrefix(values[0], "Splunk ")) {
			return ""
		}
	}
	if text != "" {
		text = ": " + cli.Printable(text)
	}
	return text
}

// putAside appends the batch to the file of rejected events.
func (c *collector) putAside() error {
	bad := c.batch
	c.batch = nil
	var lines bytes.Buffer
	for _, e := range bad {
		fmt.Fprintf(&lines, "{\"reason\":%q,\"event\":%s}\n", e.reason, e.json)
	}
	name := c.cursor + ".rejected"
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(lines.Bytes())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	c.rejected.Add(int64(len(bad)))
	c.app.Tell("%s rejects %d events (%s), which are now in %s", c.url.Host, len(bad), bad[0].reason, name)
	return nil
}
