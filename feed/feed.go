// Package feed reads blocklist feeds for [webdelivery.NetworkListsService.Plan]. It never contacts the service and
// needs no credentials. A feed has one of three formats:
//
//   - plain: one entry per line. A comment begins with # or ; anywhere, or with // at the beginning of a word. Spaces
//     around an entry, blank lines, a byte order mark and Windows line endings are ignored.
//   - csv: one column of a table. Lines that begin with # are comments.
//   - json: an array of strings or objects, which may be a member of an object.
//
// Entries are not checked; Plan does that. A feed that is empty, damaged, incomplete or a web page is an error.
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

// MaxSize is the maximum size of a feed in bytes. A list holds at most 50,000 entries, which take up to 2 MB, but a
// feed may have more if it contains duplicates or if Plan merges entries.
const MaxSize = 16 << 20

const maxEntries = MaxSize / 8 // a line with an IPv4 address has at least 8 bytes, so only other texts reach this

// ErrNoColumn means that a feed is a table but Reader.Column is empty.
var ErrNoColumn = errors.New("a table needs the name or the number of a column")

// Reader reads feeds one after the other and collects their entries. The zero value is ready to use. A Reader is not
// safe for concurrent use.
type Reader struct {
	Format  string        // plain, csv or json; "" means by extension or Content-Type, or else plain
	Column  string        // in csv: a name from the first line, or a number from 1 if no line has names
	Field   string        // in json: member with the array, and member of its objects with the entry; a.b if they differ
	Timeout time.Duration // for a download; 0 means 30 s
	// Open opens a feed that is not a URL, such as a file. nil means os.Open.
	Open func(ctx context.Context, name string) (io.ReadCloser, error)

	Entries []string // as in the feeds, without surrounding spaces
	Places  []string // feed and line of each entry, such as feed.txt:3

	limit int // maximum number of entries in a feed; default maxEntries
}

// Read reads feeds, each a file name or an http or https URL, and stops at the first error. The error names the feed
// and the line. Of a URL, it shows only the scheme, host and path, because the rest may contain keys.
func (r *Reader) Read(ctx context.Context, feeds ...string) error {
	for i, feed := range feeds {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, feed, nil)
		switch {
		case !strings.Contains(feed, "://"): // with any scheme it is a URL, whose keys an error about a file would show
			err = r.readFile(ctx, feed)
		case err != nil: // err quotes the URL, which may contain a password
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
		open = func(context.Context, string) (io.ReadCloser, error) { return os.Open(name) }
	}
	file, err := open(ctx, name)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.Parse(ctx, name, "", file)
}

// download uses its own http.Client, so that the service's credentials are not sent.
func (r *Reader) download(request *http.Request) error {
	name := request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath() // the rest may contain keys
	request.Header.Set("Accept-Encoding", "gzip")                                     // net/http's own would hide the length
	response, err := (&http.Client{Timeout: cmp.Or(r.Timeout, 30*time.Second)}).Do(request)
	if err != nil {
		err = errors.Unwrap(err) // drops the URL at its beginning
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

// endIsSeen reports whether a response that was read to its end is certainly complete. If only the end of the
// connection ends it (RFC 9112, section 6.3), a server that died looks like one that has sent everything.
func endIsSeen(response *http.Response) bool {
	return response.ProtoMajor > 1 || response.ContentLength >= 0 || slices.Contains(response.TransferEncoding, "chunked")
}

// Parse reads a feed from in. The name is used in errors and Places. Its extension or the content type selects the
// format unless Format does. The feed may end without a newline.
func (r *Reader) Parse(ctx context.Context, name, contentType string, in io.Reader) error {
	return r.parse(ctx, name, contentType, in, true)
}

// parse reads a feed. If endIsSeen is false, a feed that is not JSON must end with a newline, because a truncated line
// may be a wider range.
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
