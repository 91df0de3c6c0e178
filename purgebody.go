package webdelivery

import (
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// purgeBody is the body of a purge request (service-interface section 2.2). There is no limit on the number of URIs, so
// it is not made whole: each attempt encodes it anew, piece by piece, as it is sent.
type purgeBody struct {
	head  string
	count int                          // of URIs
	add   func(b []byte, i int) []byte // appends the i-th in JSON
	size  int                          // of the whole, in bytes

	mu    sync.Mutex
	ended bool
}

const purgeTail = "]}}"

// newPurgeBody makes a body. size is the sum of the sizes of the URIs.
func newPurgeBody(action string, count, size int, add func(b []byte, i int) []byte) *purgeBody {
	head := `{"purge_request":{"action":"` + action + `","uris":[`
	return &purgeBody{head: head, count: count, add: add, size: len(head) + size + count - 1 + len(purgeTail)}
}

// Close keeps what still reads from the body, as a transport may do after a call was given up, from the caller's URIs.
func (b *purgeBody) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Open begins the body anew.
func (b *purgeBody) Open() (io.Reader, error) { return &purgeReader{body: b}, nil }

type purgeReader struct {
	body  *purgeBody
	next  int    // the URI to be encoded next; count+1 at the end
	made  []byte // encoded and not yet read
	spare []byte
}

const purgePiece = 16 << 10

// Len is the size of the whole body, for Content-Length.
func (r *purgeReader) Len() int { return r.body.size }

func (r *purgeReader) Read(p []byte) (int, error) {
	if len(r.made) == 0 {
		if err := r.make(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.made)
	r.made = r.made[n:]
	return n, nil
}

// make encodes the next piece.
func (r *purgeReader) make() error {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return io.ErrClosedPipe
	case r.next > b.count:
		return io.EOF
	}
	if r.spare == nil {
		r.spare = make([]byte, 0, min(b.size, purgePiece+purgePiece/8))
	}
	piece := r.spare[:0]
	if r.next == 0 {
		piece = append(piece, b.head...)
	}
	for ; r.next < b.count && len(piece) < purgePiece; r.next++ {
		if r.next > 0 {
			piece = append(piece, ',')
		}
		piece = b.add(piece, r.next)
	}
	if r.next == b.count {
		piece = append(piece, purgeTail...)
		r.next++
	}
	r.made, r.spare = piece, piece
	return nil
}

func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // its one error is broken UTF-8, which validation refuses
	return b
}

func textSize(text string) int {
	if wire.PlainText([]byte(text), 0) == len(text) {
		return len(text) + 2
	}
	return len(appendText(nil, text))
}
