package main

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
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// protocol is how a kind of collector receives events.
type protocol struct {
	flag, path          string
	variable            string                               // of the environment, with what identifies this program
	header              func(secret string) http.Header      // nil if the secret cannot be used
	head, between, tail string                               // of the JSON of a request, around and between its events
	encoder             func(columns []table.Column) encoder // of an event
	judge               func(status int, answer []byte) verdict
}

// encoder returns the JSON of an event.
type encoder func(row webdelivery.Row, key string) ([]byte, error)

// verdict is what an answer means for the events of a request.
type verdict int

const (
	taken   verdict = iota // the collector has them
	refused                // it will never take all of them
	later                  // it may take them later
	never                  // it takes nothing from this program
)

// collector receives events over HTTP. What it prints has neither a header nor the text of an answer, which might repeat
// one.
type collector struct {
	protocol

	url    *url.URL
	secret http.Header
	client *http.Client
	stderr io.Writer
}

func newCollector(p protocol, address string, stderr io.Writer) (*collector, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http":
		return nil, program.Misused("-%s: want a URL such as https://collector.example.com%s", p.flag, p.path)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, program.Misused("-%s: the URL must have no login, query or fragment; secrets belong into %s", p.flag, p.variable)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = p.path
	}
	secret := p.header(os.Getenv(p.variable))
	ip, _ := netip.ParseAddr(u.Hostname())
	switch {
	case secret == nil:
		return nil, program.Misused("-%s needs %s, which is not set or malformed", p.flag, p.variable)
	case len(secret) > 0 && u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback():
		return nil, program.Misused("-%s: the network could read %s; use https", p.flag, p.variable)
	}
	return &collector{protocol: p, url: u, secret: secret, stderr: stderr, client: &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// printable reports whether a text can be the value of a header.
func printable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) })
}

// refusal means that the collector will never take all events of a request.
type refusal struct{ reason string }

// Error returns the reason.
func (r *refusal) Error() string { return r.reason }

// post sends events until the collector has taken or refused them.
func (c *collector) post(ctx context.Context, events []event) error {
	body, err := c.pack(events)
	if err != nil {
		return err
	}
	for failures := 0; ; failures++ {
		meaning, reason, wait := c.try(ctx, body)
		if ctx.Err() != nil && meaning != taken {
			return ctx.Err()
		}
		if failures > 0 && meaning != later {
			fmt.Fprintf(c.stderr, "events: %s answers again\n", c.url.Host)
		}
		switch meaning {
		case taken:
			return nil
		case refused:
			return &refusal{reason}
		case never:
			return program.Advise(fmt.Errorf("%s refuses all events: %s", c.url.Host, reason), fmt.Sprintf("check %s, and the URL of -%s", c.variable, c.flag))
		case later:
		}
		if failures == 0 {
			fmt.Fprintf(c.stderr, "events: %s takes no events: %s; trying until it does\n", c.url.Host, reason)
		}
		longest := time.Second << min(failures, 6)
		select {
		case <-ctx.Done():
		case <-time.After(max(wait, longest/2+rand.N(longest/2))):
		}
	}
}

// pack returns the body of a request.
func (p protocol) pack(events []event) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	before := p.head
	for _, e := range events {
		_, _ = io.WriteString(w, before) // Close returns the error of every write
		_, _ = w.Write(e.json)
		before = p.between
	}
	_, _ = io.WriteString(w, p.tail)
	err := w.Close()
	return packed.Bytes(), err
}

// try sends a request. It returns the reason and how long the collector asks to wait, if it does not take the events.
func (c *collector) try(ctx context.Context, body []byte) (meaning verdict, reason string, wait time.Duration) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return never, "the URL cannot be used", 0
	}
	req.Header = c.secret.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := c.client.Do(req)
	if err != nil {
		failed, ok := errors.AsType[*url.Error](err)
		switch {
		case ok && failed.Timeout():
			err = errors.New("no answer in time")
		case ok:
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
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status/100 == 3: // a redirect is not followed
		return never, reason, 0
	case status/100 == 2, status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		if meaning = c.judge(status, answer); meaning == later {
			reason += ", which does not come from a collector"
		}
		return meaning, reason, 0
	default:
		return later, reason, retryAfter(resp.Header)
	}
}

// retryAfter returns how many seconds a collector asks to wait, but at most an hour. Neither Splunk nor OpenTelemetry
// collectors send a date.
func retryAfter(h http.Header) time.Duration {
	seconds, _ := strconv.ParseUint(h.Get("Retry-After"), 10, 32)
	return min(time.Duration(seconds)*time.Second, time.Hour)
}
