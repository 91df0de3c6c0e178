// Package feed reads the feeds of a blocklist. It knows nothing of the service that has the list, nor of its credentials.
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

// Bounds of a feed. 50,000 entries, the most that a list holds, are 2 MB. Duplicates and -aggregate make more of use.
const (
	maxSize    = 16 << 20    // bytes
	maxEntries = maxSize / 8 // no IPv4 address with the end of its line is shorter, so only other texts reach it
)

// Reader reads feeds, one after the other, and collects their entries.
type Reader struct {
	Format, Column, Field string            // as the flags of the same names have it
	Timeout               time.Duration     // of a feed over http; 0 is half a minute
	Stdin                 io.Reader         // the feed that is called -
	transport             http.RoundTripper // of a feed over http; nil is that of package http
	most                  int               // entries of a feed; 0 is maxEntries

	Entries []string // as they are written in the feeds
	Places  []string // where they stand, with file and line
}

// Read reads files, addresses of the web, and standard input, which is called -. Each has an entry, or it is broken.
func (r *Reader) Read(ctx context.Context, feeds ...string) error {
	for i, feed := range feeds {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, feed, nil)
		switch {
		case feed == "-":
			err = r.readStdin(ctx)
		case !strings.Contains(feed, "://"): // any scheme is one of an address, lest its keys are printed as a file's name
			err = r.readFile(ctx, feed)
		case err != nil: // it quotes the address, and where a password stands in it nobody knows
			err = fmt.Errorf("feed %d: its address does not parse", i+1)
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

// download has a client of its own, so that no credentials of the service go along.
func (r *Reader) download(request *http.Request) error {
	name := request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath() // keys may be in the rest
	request.Header.Set("Accept-Encoding", "gzip")                                     // by hand: then package http leaves the reply its length
	response, err := (&http.Client{Transport: r.transport, Timeout: cmp.Or(r.Timeout, 30*time.Second)}).Do(request)
	if err != nil {
		err = errors.Unwrap(err) // without the address, which it begins with
		if strings.Contains(err.Error(), "Location header") {
			err = errors.New("it leads to an address that does not parse") // and would be quoted
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNonAuthoritativeInfo {
		return fmt.Errorf("%s: the reply is %d %s", name, response.StatusCode, http.StatusText(response.StatusCode))
	}
	var body io.Reader = response.Body
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		if body, err = gzip.NewReader(body); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	default:
		return fmt.Errorf("%s: its Content-Encoding %q is unknown", name, encoding)
	}
	return r.parse(request.Context(), name, response.Header.Get("Content-Type"), body, endIsSeen(response))
}

// endIsSeen tells whether reading a reply to its end proves that all of it came. If the end of a connection is all that
// ends a reply (RFC 9112, section 6.3), a server that was killed looks like one that had no more to send.
func endIsSeen(response *http.Response) bool {
	return response.ProtoMajor > 1 || response.ContentLength >= 0 || slices.Contains(response.TransferEncoding, "chunked")
}

// Parse reads a feed that has been opened. It may end without a newline, as many files do.
func (r *Reader) Parse(ctx context.Context, name, contentType string, in io.Reader) error {
	return r.parse(ctx, name, contentType, in, true)
}

// parse reads a feed, until the context ends. Unless the end of the feed is seen, it must end with a line: half a line may
// be a wider range.
func (r *Reader) parse(ctx context.Context, name, contentType string, in io.Reader, endIsSeen bool) error {
	read, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	text := strings.TrimPrefix(string(read), "\ufeff")
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case len(read) > maxSize:
		return fmt.Errorf("%s: is longer than %d bytes", name, maxSize)
	case strings.Contains(contentType, "html") || strings.HasPrefix(strings.TrimSpace(text), "<"):
		return fmt.Errorf("%s:1: is a web page and no feed", name)
	}
	before := len(r.Entries)
	d := &document{Reader: r, name: name, text: text, line: 1}
	format := cmp.Or(r.Format, strings.ToLower(path.Ext(name)+contentType))
	isCSV := strings.Contains(format, "csv")
	switch isJSON := !isCSV && strings.Contains(format, "json"); {
	case isJSON: // it has an end of its own
		err = d.json(ctx)
	case text != "" && !endIsSeen && !strings.HasSuffix(text, "\n"):
		d.line += strings.Count(text, "\n")
		err = errors.New("the reply ends with its connection, and in the middle of a line: it may be cut")
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
