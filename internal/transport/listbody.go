package transport

import (
	"io"
	"sync"
)

// ListBody is a JSON body that is mostly one array, of any number of items. It is never whole in memory: each attempt
// encodes it again, piece by piece, while it is sent. It is an [Encoder].
type ListBody struct {
	head, tail string
	count      int                          // of items
	add        func(b []byte, i int) []byte // appends the i-th in JSON
	size       int                          // of the whole, in bytes

	mu    sync.Mutex
	ended bool
}

// NewListBody returns a body of head, items with commas between them, and tail. size is the sum of the sizes of the
// items in bytes. add appends the item with index i.
func NewListBody(head, tail string, count, size int, add func(b []byte, i int) []byte) *ListBody {
	return &ListBody{head: head, tail: tail, count: count, add: add, size: len(head) + size + count - 1 + len(tail)}
}

// Close stops readers of the body from using the caller's items. A transport may still read after a call was canceled.
func (b *ListBody) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Open returns a reader that begins at the start of the body.
func (b *ListBody) Open() (io.Reader, error) { return &listReader{body: b}, nil }

type listReader struct {
	body  *ListBody
	next  int    // the item to be encoded next; count+1 at the end
	made  []byte // encoded and not yet read
	spare []byte
}

const listPiece = 16 << 10

// Len returns the size of the whole body, for Content-Length.
func (r *listReader) Len() int { return r.body.size }

func (r *listReader) Read(p []byte) (int, error) {
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
func (r *listReader) make() error {
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
		r.spare = make([]byte, 0, min(b.size, listPiece+listPiece/8))
	}
	piece := r.spare[:0]
	if r.next == 0 {
		piece = append(piece, b.head...)
	}
	for ; r.next < b.count && len(piece) < listPiece; r.next++ {
		if r.next > 0 {
			piece = append(piece, ',')
		}
		piece = b.add(piece, r.next)
	}
	if r.next == b.count {
		piece = append(piece, b.tail...)
		r.next++
	}
	r.made, r.spare = piece, piece
	return nil
}
