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
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// protocol is how a kind of collector receives events.
type protocol struct {
	flag, path          string
	variable            string                          // of the environment, with what identifies this program
	header              func(secret string) http.Header // nil if the secret cannot be used
	head, between, tail string                          // of the JSON of a request, around and between its events
	encoder             func(columns []string) encoder
	judge               func(status int, answer []byte) verdict
}

// encoder returns the JSON of an event.
type encoder func(row webdelivery.Row, at time.Time, key string) ([]byte, error)

// verdict is what an answer means for the events of a request.
type verdict int

const (
	taken   verdict = iota // the collector has them
	refused                // it will never take all of them
	later                  // it may take them later
	never                  // it takes nothing from this program
)

// A request has at most so many events, and so many bytes before compression unless a single event has more.
const (
	maxBatch = 500
	maxBytes = 1_000_000
)

// event is an event as a collector receives it.
type event struct {
	json   []byte
	reason string // why it was refused
}

// collector sends events over HTTP. It stores the position only when the collector has acknowledged, or the file of
// rejected events has, all before it. It prints neither a header nor the text of an answer, which might repeat one.
type collector struct {
	protocol
	*meters

	url     *url.URL
	secret  http.Header
	client  *http.Client
	cursor  *webdelivery.CursorFile
	rejects string // the file
	encode  encoder

	batch    []event
	size     int // of the batch, in bytes
	stored   time.Time
	accepted []event // the last one that was taken; nil if none was
	outage   verdict // of which the user was told; taken is none
}

func newCollector(p protocol, address string) (*collector, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, cli.Misused("--%s: want a URL such as https://collector.example.com%s; secrets belong into %s", p.flag, p.path, p.variable)
	case strings.Trim(u.Path, "/") == "":
		u.Path = p.path
	}
	secret := p.header(os.Getenv(p.variable))
	ip, _ := netip.ParseAddr(u.Hostname())
	switch {
	case secret == nil:
		return nil, cli.Misused("--%s needs %s, which is not set or malformed", p.flag, p.variable)
	case len(secret) > 0 && u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback():
		return nil, cli.Misused("--%s: the network could read %s; use https", p.flag, p.variable)
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &collector{protocol: p, url: u, secret: secret, client: &http.Client{Timeout: 30 * time.Second, CheckRedirect: noRedirect}}, nil
}

// printable reports whether a text can be in a header.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) })
}

// post sends events until the collector has taken or refused them. It returns why they were refused, or "". If the
// collector takes nothing from this program, that is an error until it has taken something.
func (c *collector) post(ctx context.Context, events []event) (refusal string, err error) {
	body := c.pack(events)
	for failures := 0; ; failures++ {
		meaning, reason, asked := c.try(ctx, body)
		switch {
		case meaning == taken:
			if c.outage != taken {
				c.app.Tell("%s takes events again", c.url.Host)
			}
			c.outage = taken
			return "", nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case meaning == refused:
			return reason, nil
		case meaning == never && c.accepted == nil:
			return "", cli.Advise(errors.New(c.url.Host+" refuses all events: "+reason), "check "+c.variable+", and the URL of --"+c.flag)
		}
		c.tellOutage(meaning, "takes no events: "+reason+"; trying until it does")
		if err := c.pause(ctx, failures, asked); err != nil {
			return "", err
		}
	}
}

// tellOutage says once why the collector has nothing, and now and then how far behind it is.
func (c *collector) tellOutage(why verdict, text string) {
	if c.outage != why {
		c.app.Tell("%s %s", c.url.Host, text)
	}
	c.outage = why
	c.tell()
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
	var packed bytes.Buffer // which no write fails to
	w := gzip.NewWriter(&packed)
	before := p.head
	for _, e := range events {
		_, _ = io.WriteString(w, before)
		_, _ = w.Write(e.json)
		before = p.between
	}
	_, _ = io.WriteString(w, p.tail)
	_ = w.Close()
	return packed.Bytes()
}

// try sends a request. It returns the reason and how long the collector asks to wait, if it does not take the events.
func (c *collector) try(ctx context.Context, body []byte) (meaning verdict, reason string, asked time.Duration) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return never, "the URL cannot be used", 0
	}
	req.Header = c.secret.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := c.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL
		}
		return later, err.Error(), 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return later, "the answer is incomplete", 0
	}
	reason = strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if status := resp.StatusCode; slices.Contains([]int{401, 403, 404}, status) || status/100 == 3 {
		return never, reason, 0 // a redirect is not followed
	}
	if meaning = c.judge(resp.StatusCode, answer); meaning == later && resp.StatusCode/100 == 2 {
		reason += ", which does not come from a collector"
	}
	seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 32) // collectors send no dates
	return meaning, reason, min(time.Duration(seconds)*time.Second, time.Hour)
}

// Write adds an event to the batch, and sends it when it is full.
func (c *collector) Write(ctx context.Context, row webdelivery.Row, at time.Time) error {
	text, err := c.encode(row, at, c.export.Key())
	if err == nil && c.size+len(text) > maxBytes {
		err = c.flush(ctx, true)
	}
	if err != nil {
		return err
	}
	c.batch, c.size = append(c.batch, event{json: text}), c.size+len(text)+1
	if len(c.batch) < maxBatch {
		return nil
	}
	if err := c.flush(ctx, true); err != nil || time.Since(c.stored) < 5*time.Second {
		return err
	}
	return c.store()
}

// Commit sends the batch and stores the position.
func (c *collector) Commit(ctx context.Context, ending bool) error {
	if err := c.flush(ctx, ending); err != nil || len(c.batch) > 0 {
		return err
	}
	c.reach(c.export.Cursor().Reached())
	return c.store()
}

func (c *collector) store() error {
	cursor := c.export.Cursor()
	c.stored = time.Now()
	c.reach(cursor.Time())
	return c.cursor.Store(cursor)
}

// flush sends the batch. Events are put aside if they are refused alone, and the collector takes a good one right before
// and right after: one that refuses everything is broken, and would fill the file of rejected events with those of a day.
// It then gets them again; at once, or if there is room for more, together with the events that follow. These show whether
// the collector works, if it has taken nothing from this process yet.
func (c *collector) flush(ctx context.Context, wait bool) error {
	works := false
	for failures := 0; len(c.batch) > 0; failures++ {
		bad, err := c.send(ctx, c.batch)
		if err != nil {
			return err
		}
		if c.batch, c.size = bad, 0; len(bad) == 0 {
			return nil
		}
		worked, refusal := works, bad[0].reason
		if c.accepted != nil {
			if refusal, err = c.post(ctx, c.accepted); err != nil { // it has the same key again
				return err
			}
		}
		if works = refusal == ""; works && worked {
			c.batch = nil
			return c.putAside(bad)
		}
		if works {
			continue
		}
		c.tellOutage(refused, "refuses every event: "+refusal+"; nothing is put aside, trying until it takes one")
		if !wait {
			return nil
		}
		if err := c.pause(ctx, failures, 0); err != nil {
			return err
		}
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

// putAside appends events to the file of rejected events.
func (c *collector) putAside(events []event) error {
	var lines bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&lines, "{\"reason\":%q,\"event\":%s}\n", e.reason, e.json)
	}
	file, err := os.OpenFile(c.rejects, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(lines.Bytes())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	c.rejected.Add(int64(len(events)))
	c.app.Tell("%s rejects %d events (%s), which are now in %s", c.url.Host, len(events), events[0].reason, c.rejects)
	return nil
}
