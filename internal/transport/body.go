package transport

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

const (
	maxErrorBody    = 64 << 10  // bytes of a response that a Failure keeps
	maxTrusted      = 4 << 20   // of a Content-Length: more memory is allocated when the bytes have come
	maxDrained      = 256 << 10 // read after that, so that the connection can be used again
	errorBodyWithin = 2 * time.Second
)

// endless: only the end of the connection marks the end of the body (HTTP/1 without a length, not chunked). Such a body
// looks whole even if it was cut, unless its JSON shows the cut. If HTTP does mark the end, the service has sent what
// it wanted to send, and a retry would return the same. The end of a gzip text is marked too, once it has begun.
func endless(resp *http.Response, begun bool) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && (!resp.Uncompressed || !begun)
}

// isCut: the body of an endless response is only the beginning of a JSON text. A body that does not begin like JSON may
// be anything.
func isCut(body []byte, hasBody bool) bool {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return hasBody
	}
	return wire.IsCut(body)
}

// readWhole reads the body of a success and closes it. A body longer than the limit is an error: a body cut without an
// error would look whole. readWhole counts the bytes after decompression.
func readWhole(resp *http.Response, limit int64) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	size := int64(bytes.MinRead)
	if n := resp.ContentLength; n > 0 && resp.Body != http.NoBody {
		size = min(n, limit, maxTrusted) + 1 // one byte more, for the read that finds the end
	}
	body := make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			more := int64(len(body))
			if rest := resp.ContentLength - more; rest >= 0 {
				more = min(more, rest+1) // at most double: a Content-Length is trusted only for what has come
			}
			body = slices.Grow(body, int(more))
		}
		room := body[len(body):cap(body)]
		if left := limit - int64(len(body)); left < int64(len(room)) {
			room = room[:left+1] // one byte more than allowed
		}
		n, err := resp.Body.Read(room)
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, tooLarge(limit)
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, err
		}
	}
}

// readRefusal keeps the beginning of the body of a refusal and closes it. It reads some more bytes, so that the
// connection can be used again. The status has arrived, so a body that is cut or slow is no error.
func readRefusal(resp *http.Response) (beginning []byte, cut bool) {
	defer func() { _ = resp.Body.Close() }()
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, maxErrorBody+redact.Margin))
	if err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
	}
	return buf.Bytes(), err != nil
}

// countedBody passes a body to its reader, within the limit, and counts its bytes after decompression.
type countedBody struct {
	from        io.Reader
	limit, size int64
	beginning   []byte // for errors
	err         error  // that ended the reading, except io.EOF
}

func (b *countedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if left := b.limit - b.size; left < int64(len(p)) {
		p = p[:left+1] // one byte more than allowed
	}
	n, err := b.from.Read(p)
	b.size += int64(n)
	if b.size > b.limit {
		err = tooLarge(b.limit)
	}
	if room := maxErrorBody + redact.Margin - len(b.beginning); room > 0 {
		b.beginning = append(b.beginning, p[:min(n, room)]...)
	}
	if err != io.EOF { //nolint:errorlint // a Reader's io.EOF is never wrapped
		b.err = err
	}
	return n, err
}
