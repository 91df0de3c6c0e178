package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"
)

const maxFeed = 32 << 20 // bytes; 50,000 entries, the most that a list holds, are 2 MB

// entry is one entry of a feed, and where it stands.
type entry struct {
	text, feed string
	line       int
}

// wrong says what is wrong with an entry.
func (e entry) wrong(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", e.feed, e.line, fmt.Sprintf(format, args...))
}

// reader reads feeds. It knows nothing of the service and its credentials.
type reader struct {
	in                    io.Reader // the feed "-"
	format, column, field string
	timeout               time.Duration
}

// read gives the entries of a feed, of which there is at least one.
func (r *reader) read(ctx context.Context, feed string) ([]entry, error) {
	name, text, contentType, err := r.fetch(ctx, feed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(text) > maxFeed:
		return nil, fmt.Errorf("%s: is longer than %d bytes", name, maxFeed)
	case contentType == "text/html" || strings.HasPrefix(strings.TrimSpace(text), "<"):
		return nil, fmt.Errorf("%s:1: is a web page and no feed", name)
	}
	entries, err := parsers[r.formatOf(name, contentType)](r, name, strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.text, "/0") {
			return nil, e.wrong("%q is every address there is", e.text)
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s:1: has no entries", name)
	}
	return entries, nil
}

// formats are what endings of names and Content-Types stand for.
var formats = map[string]string{
	".txt": "plain", ".csv": "csv", ".json": "json", "text/csv": "csv", "application/json": "json",
}

// formatOf trusts a name more than a Content-Type, which is text/plain for every file of some servers.
func (r *reader) formatOf(name, contentType string) string {
	return cmp.Or(r.format, formats[strings.ToLower(path.Ext(name))], formats[contentType], "plain")
}

// fetch reads a feed; one byte more than is allowed tells that it is too long. The name is as people may see it.
func (r *reader) fetch(ctx context.Context, feed string) (name, text, contentType string, err error) {
	if address, err := url.Parse(feed); err == nil && (address.Scheme == "http" || address.Scheme == "https") {
		return r.download(ctx, address)
	}
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // a pipe may give nothing for ever, and reading it cannot be interrupted
		text, err := r.readFile(feed)
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return feed, "", "", ctx.Err()
	case read := <-done:
		return feed, string(read.text), "", read.err
	}
}

func (r *reader) readFile(feed string) ([]byte, error) {
	if feed == "-" {
		return io.ReadAll(io.LimitReader(r.in, maxFeed+1))
	}
	file, err := os.Open(feed) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, errors.Unwrap(err) // the name stands before it already
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFeed+1))
}

// download reads a feed over http, with a client that has no credentials.
func (r *reader) download(ctx context.Context, address *url.URL) (name, text, contentType string, err error) {
	shown := *address
	shown.User, shown.RawQuery, shown.Fragment = nil, "", "" // there may be keys in it
	name = shown.String()
	client := http.Client{Timeout: r.timeout, CheckRedirect: checkRedirect}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return name, "", "", err
	}
	response, err := client.Do(request)
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	if err != nil {
		return name, "", "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK { // the others of 2xx are no feed, or a part of one
		return name, "", "", fmt.Errorf("the reply is %s", response.Status)
	}
	contentType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	body, err := io.ReadAll(io.LimitReader(response.Body, maxFeed+1))
	return name, string(body), contentType, err
}

// checkRedirect follows a feed that has moved, but not to where anybody on the way could change it.
func checkRedirect(to *http.Request, via []*http.Request) error {
	if via[len(via)-1].URL.Scheme == "https" && to.URL.Scheme != "https" {
		return errors.New("a redirect leads from https to http")
	}
	if len(via) == 10 {
		return errors.New("more than 10 redirects")
	}
	return nil
}
