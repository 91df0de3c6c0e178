// Package feed reads the feeds of a blocklist. It does not know the service or its credentials.
package feed

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// Bounds of a feed. A list holds at most 50,000 entries, which take 2 MB. With duplicates and -aggregate, a feed can be
// longer.
const (
	maxSize    = 16 << 20    // bytes
	maxEntries = maxSize / 8 // the shortest line of an IPv4 address has 8 bytes, so only other texts reach it
)

// Reader reads feeds, one after the other, and collects their entries.
type Reader struct {
	Format, Column, Field string            // the values of these flags
	Timeout               time.Duration     // of a feed over http; default 30 s
	Stdin                 io.Reader         // the feed -
	transport             http.RoundTripper // of a feed over http; default http.DefaultTransport
	most                  int               // highest number of entries in a feed; default maxEntries

	Entries []string // unchanged from the feeds
	Places  []string // file and line of each entry
}

// Read reads files, http addresses, and - for standard input. It returns an error for a feed without an entry.
func (r *Reader) Read(ctx context.Context, feeds ...string) error {
	for i, feed := range feeds {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, feed, nil)
		switch {
		case feed == "-":
			err = r.readStdin(ctx)
		case !strings.Contains(feed, "://"): // any scheme means an address: it may hold keys, which an error about a file would print
			err = r.readFile(ctx, feed)
		case err != nil: // err quotes the address, which may hold a password
			err = fmt.Errorf("feed %d: its address does not parse; check it", i+1)
		default:
			err = r.download(request)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) readFile(ctx context.Context, name string) error {
	file, err := program.Open(ctx, name)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.Parse(ctx, name, "", file)
}

func (r *Reader) readStdin(ctx context.Context) error {
	const name = "standard input"
	text, err := program.Until(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r.Stdin, maxSize+1)) }, func([]byte) {})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.Parse(ctx, name, "", bytes.NewReader(text))
}

// download uses a client of its own, so that it sends no credentials of the service.
func (r *Reader) download(request *http.Request) error {
	name := request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath() // the rest may hold keys
	request.Header.Set("Accept-Encoding", "gzip")                                     // set here, because package http would hide the length of the response
	response, err := (&http.Client{Transport: r.transport, Timeout: cmp.Or(r.Timeout, 30*time.Second)}).Do(request)
	if err != nil {
		err = errors.Unwrap(err) // without the address at its beginning
		if strings.Contains(err.Error(), "Location header") {
			err = errors.New("it redirects to an address that does not parse") // err would quote that
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNonAuthoritativeInfo {
		return fmt.Errorf("%s: the response is %d %s", name, response.StatusCode, http.StatusText(response.StatusCode))
	}
	var body io.Reader = response.Body
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		if body, err = gzip.NewReader(body); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	default:
		return fmt.Errorf("%s: its Content-Encoding %q is unknown; it must be gzip or none", name, encoding)
	}
	return r.parse(request.Context(), name, response.Header.Get("Content-Type"), body, endIsSeen(response))
}

// endIsSeen reports whether a response is certainly complete when it has been read to its end. If only the end of the
// connection ends a response (RFC 9112, section 6.3), a killed server looks like one that has sent everything.
func endIsSeen(response *http.Response) bool {
	return response.ProtoMajor > 1 || response.ContentLength >= 0 || slices.Contains(response.TransferEncoding, "chunked")
}

// Parse reads an open feed. It may end without a newline, as many files do.
func (r *Reader) Parse(ctx context.Context, name, contentType string, in io.Reader) error {
	return r.parse(ctx, name, contentType, in, true)
}

// parse reads a feed until the context ends. If endIsSeen is false, the feed must end with a newline, because an
// incomplete line may be a wider range.
func (r *Reader) parse(ctx context.Context, name, contentType string, in io.Reader, endIsSeen bool) error {
	read, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	text := strings.TrimPrefix(string(read), "\ufeff")
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case len(read) > maxSize:
		return fmt.Errorf("%s: is longer than %d bytes; split it", name, maxSize)
	case strings.Contains(contentType, "html") || strings.HasPrefix(strings.TrimSpace(text), "<"):
		return fmt.Errorf("%s:1: is a web page; use the address of the feed itself", name)
	}
	before := len(r.Entries)
	d := &document{Reader: r, name: name, text: text, line: 1}
	format := cmp.Or(r.Format, strings.ToLower(path.Ext(name)+contentType))
	isCSV := strings.Contains(format, "csv")
	switch isJSON := !isCSV && strings.Contains(format, "json"); {
	case isJSON: // JSON marks its own end
		err = d.json(ctx)
	case text != "" && !endIsSeen && !strings.HasSuffix(text, "\n"):
		d.line += strings.Count(text, "\n")
		err = errors.New("the response ends with its connection, in the middle of a line, and may be incomplete: try again")
	case isCSV:
		err = d.csv(ctx)
	default:
		err = d.plain(ctx)
	}
	if err == nil && len(r.Entries) > before {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", name, d.line, cmp.Or(err, errors.New("the feed ends without an entry")))
}
