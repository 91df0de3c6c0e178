package webdelivery

import (
	"io"
	"sync"

	"github.com/webdelivery/webdelivery-go/internal/purgewire"
)

// purgeBody is the JSON body of a purge, with any number of URIs. It is never whole in memory: each attempt encodes it
// again, piece by piece, while it is sent. It is a transport.Encoder.
type purgeBody struct {
	head string
	uris []PurgeURI
	size int // of the whole, in bytes

	mu    sync.Mutex
	ended bool
}

func (r PurgeRequest) body() *purgeBody {
	b := &purgeBody{head: purgewire.Head(string(r.Action)), uris: r.URIs}
	b.size = len(b.head) + len(r.URIs) - 1 + len(purgewire.Tail)
	for i := range r.URIs {
		b.size += r.URIs[i].wire().Size()
	}
	return b
}

// Close stops readers of the body from using the caller's URIs. A transport may still read after a call was canceled.
func (b *purgeBody) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Open returns a reader that begins at the start of the body.
func (b *purgeBody) Open() (io.Reader, error) { return &purgeReader{body: b}, nil }

type purgeReader struct {
	body  *purgeBody
	next  int    // the URI to be encoded next; one more than their number at the end
	made  []byte // encoded and not yet read
	spare []byte
}

const purgePiece = 16 << 10

// Len returns the size of the whole body, for Content-Length.
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

// make encodes the next part of the body.
func (r *purgeReader) make() error {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return io.ErrClosedPipe
	case r.next > len(b.uris):
		return io.EOF
	}
	if r.spare == nil {
		r.spare = make([]byte, 0, min(b.size, purgePiece+purgePiece/8))
	}
	piece := r.spare[:0]
	if r.next == 0 {
		piece = append(piece, b.head...)
	}
	for ; r.next < len(b.uris) && len(piece) < purgePiece; r.next++ {
		if r.next > 0 {
			piece = append(piece, ',')
		}
		piece = b.uris[r.next].wire().Append(piece)
	}
	if r.next == len(b.uris) {
		piece = append(piece, purgewire.Tail...)
		r.next++
	}
	r.made, r.spare = piece, piece
	return nil
}
