package rowjson

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"reflect"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// writer decodes rows into a struct while it splits them, because every row of a loop over structs is decoded.
// Splitting rows first and decoding them later takes 50 % longer. Target.Store gives the Reader of its first row a
// writer, which writes all further rows into a struct of its own, and Store then copies that struct. A row that is
// incomplete or has an error is split as usual, and Store decodes it.
//
// A writer belongs to one Reader and shares nothing with the Target, because the loop may drop or repeat rows, mix them
// with rows of other Readers, or pass them to other goroutines.
type writer struct {
	into  any      // pointer to the struct
	cells []cell   // of the columns
	never fieldSet // fields that no cell ever writes
	left  fieldSet // fields that no cell has written in the last row
	plain bool     // all values of the last row are plain, without white space between them
}

// fieldSet has one bit for each of the first 63 fields of a struct, and one for all others.
type fieldSet uint64

const (
	allFields fieldSet = 1<<64 - 1
	others             = 63
)

// cell reads the values of one column.
type cell struct {
	read   read
	field  fieldSet // field that read writes; 0 if there is none
	behind byte     // the comma or closing bracket after the column
	wanted bool     // there is a field for the column
	value  Value    // of the last row, if wanted and not written
}

// read reads the value that begins at text[i], and writes it if it can. It returns the index after the value, or 0 if
// the value is not plain. Integers and ASCII strings without escapes are plain.
type read func(text []byte, i int) (end int, written bool)

// newWriter returns a writer for rows with the given number of columns.
func (t *Target) newWriter(columns int) *writer {
	into := reflect.New(t.into.Type())
	target, _ := t.tags.Target(into.Interface()) // succeeds because it did for t
	w := &writer{into: into.Interface(), cells: make([]cell, columns)}
	for i := range w.cells {
		w.cells[i] = cell{read: readOnly, behind: ','}
	}
	w.cells[columns-1].behind = ']'
	for i, s := range target.steps {
		c, field := &w.cells[t.steps[i].column], fieldSet(1)<<min(i, others)
		if c.wanted || s.read == nil || i >= others {
			w.never |= field | c.field
			c.read, c.field = readOnly, 0
		} else {
			c.read, c.field = s.read, field
		}
		c.wanted = true
	}
	return w
}

// write reads and writes the row at the beginning of a text, and returns the index after it. It returns 0 if the row is
// incomplete or has an error.
func (w *writer) write(s *rowScan, text []byte) (end int) {
	w.left, w.plain = w.never, true
	i := 1
	for column := range w.cells {
		c := &w.cells[column]
		end, written := c.read(text, i)
		if end == 0 || !written && c.wanted || end >= len(text) || text[end] != c.behind {
			if i = w.readAny(s, c, text, i, end, written); i == 0 {
				return 0
			}
			continue
		}
		i = end + 1
	}
	return i
}

// readAny reads a value that is not plain, does not fit, or has white space around it. end and written are the results
// of the column's read. readAny returns the index after the comma or bracket that follows the value, or 0 if the value
// is incomplete or invalid.
func (w *writer) readAny(s *rowScan, c *cell, text []byte, i, end int, written bool) (next int) {
	w.plain = false
	if start := skipAnyBlanks(text, i); start == len(text) {
		return 0
	} else if start > i {
		i = start
		end, written = c.read(text, i)
	}
	m := mark(0)
	if end == 0 {
		if end, m = s.anyValue(text, i, i+1); end == 0 {
			return 0
		}
	}
	if !written {
		w.left |= c.field
		c.value = Value{text[i:end], m&differs != 0}
	}
	if end = skipAnyBlanks(text, end); end == len(text) || text[end] != c.behind {
		return 0
	}
	return end + 1
}

// readOnly reads a value without writing it.
func readOnly(text []byte, i int) (end int, written bool) {
	if i >= len(text) {
		return 0, false
	}
	if text[i] != '"' {
		if end, plain := plainNumber(text, i); plain {
			return end, false
		}
		return 0, false
	}
	end, plain := behindQuote(text, wire.PlainText(text, i+1))
	if !plain {
		return 0, false
	}
	return end, false
}

// The next four functions must not be inlined into storeFor. In such a long function, the compiler inlines almost
// nothing, not even in the functions that these return, and rows would take 10 % longer.

// readText returns a read for a string field.
//
//go:noinline
func readText(p *string, all *texts) read {
	return func(text []byte, i int) (end int, written bool) {
		if i+9 > len(text) || text[i] != '"' {
			return readOnly(text, i)
		}
		i++
		var k key
		k.first = binary.LittleEndian.Uint64(text[i:])
		if found := wire.Special(k.first); found != 0 {
			n := bits.TrailingZeros64(found) >> 3
			end = i + n
			k.first &= uint64(1)<<(8*n) - 1
		} else {
			end = wire.PlainText(text, i+8)
			k.last = binary.LittleEndian.Uint64(text[end-8:])
		}
		if end >= len(text) || text[end] != '"' {
			return 0, false
		}
		if end-i <= keySize {
			if known, ok := all.atOnce(k, end-i); ok {
				all.found++
				*p = known
				return end + 1, true
			}
		}
		*p = all.known(k, text[i:end])
		return end + 1, true
	}
}

// readWhole returns a read for an integer field.
//
//go:noinline
func readWhole[T integer](p *T) read {
	return func(text []byte, start int) (end int, written bool) {
		first := start
		if start < len(text) && text[start] == '-' {
			first++
		}
		n, i := int64(0), first
		for i < len(text) && text[i]-'0' <= 9 {
			n = n*10 + int64(text[i]-'0')
			i++
		}
		digits, fits := i-first, true
		if first > start {
			n = -n
			fits = T(n) < 0 // otherwise it is -0, or the field is unsigned
		}
		if !fits || i == len(text) || !isBehind(text[i]) || digits == 0 || digits > 18 || digits > 1 && text[first] == '0' || int64(T(n)) != n {
			return readOnly(text, start)
		}
		*p = T(n)
		return i, true
	}
}

// readTime returns a read for a time field. Most timestamps have no fraction or three digits of it, so their end is
// known.
//
//go:noinline
func readTime(p *time.Time, known *wire.Date) read {
	const seconds, milliseconds = len(`"2006-01-02T15:04:05"`), len(`"2006-01-02T15:04:05.000"`)
	return func(text []byte, i int) (end int, written bool) {
		if i >= len(text) || text[i] != '"' {
			return readOnly(text, i)
		}
		for _, size := range [...]int{seconds, milliseconds} {
			if end = i + size; end <= len(text) && text[end-1] == '"' {
				if at, ok := wire.PlainTimestamp(text[i+1:end-1], known); ok {
					*p = at
					return end, true
				}
			}
		}
		if end, _ = readOnly(text, i); end == 0 {
			return 0, false
		}
		at, ok := wire.PlainTimestamp(text[i+1:end-1], known)
		if ok {
			*p = at
		}
		return end, ok
	}
}

// readAddr returns a read for an IP address field.
//
//go:noinline
func readAddr(p *netip.Addr) read {
	return func(text []byte, i int) (end int, written bool) {
		addr, end := ipv4At(text, i)
		if end == 0 {
			addr, end = ipv6At(text, i)
		}
		if end == 0 {
			return readOnly(text, i)
		}
		*p = addr
		return end, true
	}
}
