// Package feed reads the feeds of a blocklist, for [webdelivery.NetworkListsService.Plan]. It does not know the service
// or its credentials. A feed has one of three formats:
//
//   - plain: one entry per line. # or ; begins a comment anywhere, and // at the beginning of a word. Spaces around an
//     entry, blank lines, a byte order mark and the carriage returns of Windows are ignored.
//   - csv: a column of a table. Lines that begin with # are comments.
//   - json: an array of strings or of objects, which may be a member of an object.
//
// An entry is not checked: Plan does that. A feed that is empty, damaged, incomplete or a web page is an error.
//
// [webdelivery.NetworkListsService.Plan]: https://pkg.go.dev/github.com/webdelivery/webdelivery-go#NetworkListsService.Plan
package feed

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxSize is how long a feed may be, in bytes. A list holds at most 50,000 entries, which take 2 MB. With duplicates,
// and if Plan merges them, a feed can be longer.
const MaxSize = 16 << 20

const maxEntries = MaxSize / 8 // the shortest line of an IPv4 address has 8 bytes, so only other texts reach it

// ErrNoColumn means that a feed is a table, and Column is empty.
var ErrNoColumn = errors.New("a table needs the name or the number of a column")

// Reader reads feeds, one after the other, and collects their entries. The zero value is ready to use. It is not safe
// for concurrent use.
type Reader struct {
	Format  string        // plain, csv or json; "": the extension or the Content-Type decides, or else it is plain
	Column  string        // of a table: a name from the first line, or a number from 1 if no line has names
	Field   string        // of JSON: the member that is the array or is in its objects; a.b: member b of the objects in the array a
	Timeout time.Duration // of a feed over http; 0 means 30 s
	// Open opens a feed that is no address, such as a file. nil means os.Open.
	Open func(ctx context.Context, name string) (io.ReadCloser, error)

	Entries []string // as the feeds have them, without the space around them
	Places  []string // feed and line of each entry, such as feed.txt:3

	transport http.RoundTripper // of a feed over http; default http.DefaultTransport
	most      int               // highest number of entries in a feed; default maxEntries
}

// Read reads files, and http or https addresses. After an error it reads no further feed. The error names the feed and
// the line, but only scheme, host and path of an address.
func (r *Reader) Read(ctx context.Context, feeds ...string) error {
	for i, feed := range feeds {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, feed, nil)
		switch {
		case !strings.Contains(feed, "://"): // any scheme means an address: it may hold keys, which an error about a file would print
			err = r.readFile(ctx, feed)
		case err != nil: // err quotes the address, which may hold a password
			err = fmt.Errorf("feed %d: its address cannot be parsed; check it", i+1)
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
	open := r.Open
	if open == nil {
		open = func(context.Context, string) (io.ReadCloser, error) { return os.Open(name) } //nolint:gosec // the caller names it
	}
	file, err := open(ctx, name)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer file.Close()
	return r.Parse(ctx, name, "", file)
}

// download uses a client of its own, so that it sends no credentials of the service.
func (r *Reader) download(request *http.Request) error {
	name := request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath() // the rest may hold keys
	request.Header.Set("Accept-Encoding", "gzip")                                     // set here, because package http would hide the length of the response
	response, err := (&http.Client{Transport: r.transport, Timeout: cmp.Or(r.Timeout, 30*time.Second)}).Do(request)
	if err != nil {
		err = errors.Unwrap(err) // without the address at its beginning
		if strings.Contains(err.Error(), "Location header") {
			err = errors.New("it redirects to an address that cannot be parsed") // err would quote that
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

// Parse reads an open feed. The name is for errors and places, and its extension may tell the format, as may the
// Content-Type. The feed may end without a newline, as many files do.
func (r *Reader) Parse(ctx context.Context, name, contentType string, in io.Reader) error {
	return r.parse(ctx, name, contentType, in, true)
}

// parse reads a feed until the context ends. If endIsSeen is false, the feed must end with a newline, because an
// incomplete line may be a wider range.
func (r *Reader) parse(ctx context.Context, name, contentType string, in io.Reader, endIsSeen bool) error {
	read, err := io.ReadAll(io.LimitReader(in, MaxSize+1))
	text := strings.TrimPrefix(string(read), "\ufeff")
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case len(read) > MaxSize:
		return fmt.Errorf("%s: is longer than %d bytes; split it", name, MaxSize)
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
