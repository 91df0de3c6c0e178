package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"time"
)

// Most numbers and timestamps have a plain form, which is parsed here without allocating a string. All other forms are
// left to strconv and time.

// PlainTimestamp parses yyyy-MM-ddTHH:mm:ss in UTC. There may be a space instead of the T, a fraction of up to nine
// digits, and a Z at the end. It returns false for every other form. known caches the date between calls, because most
// timestamps have the same date as the previous one.
func PlainTimestamp(text []byte, known *Date) (time.Time, bool) {
	const form = "yyyy-MM-ddTHH:mm:ss"
	if len(text) < len(form) || text[10] != 'T' && text[10] != ' ' {
		return time.Time{}, false
	}
	if day := [10]byte(text); (day != known.text || day == none) && !known.read(day) {
		return time.Time{}, false
	}
	seconds, ok := plainTime([8]byte(text[11:]))
	if !ok {
		return time.Time{}, false
	}
	nanos := uint(0)
	if fraction := bytes.TrimSuffix(text[len(form):], zulu); len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) == 1 || len(fraction) > 10 {
			return time.Time{}, false
		}
		for _, c := range fraction[1:] {
			if c-'0' > 9 {
				return time.Time{}, false
			}
			nanos = nanos*10 + uint(c-'0')
		}
		nanos *= [...]uint{1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 10, 1}[len(fraction)-2]
	}
	return time.Unix(known.midnight+seconds, int64(nanos)).UTC(), true
}

var (
	zulu = []byte("Z")
	none = [10]byte{} // the text of the zero Date, which is not a date
)

// plainTime parses HH:mm:ss, all bytes at once. It returns the seconds since midnight.
func plainTime(text [8]byte) (seconds int64, ok bool) {
	const zeros, colons = 0x3030_3a30_303a_3030, 0x0000_ff00_00ff_0000
	digits := binary.LittleEndian.Uint64(text[:]) ^ zeros // 0 to 9 in each byte, and 0 for a colon
	if (digits|(digits+0x0606_0606_0606_0606))&0xf0f0_f0f0_f0f0_f0f0|digits&colons != 0 {
		return 0, false
	}
	two := func(i int) int64 { return int64(digits>>(8*i)&0xf*10 + digits>>(8*i+8)&0xf) }
	hour, minute, second := two(0), two(3), two(6)
	return hour*3600 + minute*60 + second, hour <= 23 && minute <= 59 && second <= 59
}

// Date is the date that [PlainTimestamp] parsed last. The zero value holds none.
type Date struct {
	text     [10]byte // yyyy-MM-dd
	midnight int64    // seconds from 1970
}

func (k *Date) read(text [10]byte) bool {
	for i, c := range text {
		if isDash := i == 4 || i == 7; isDash && c != '-' || !isDash && c-'0' > 9 {
			return false
		}
	}
	two := func(i int) int { return int(text[i]-'0')*10 + int(text[i+1]-'0') }
	year, month, day := two(0)*100+two(2), time.Month(two(5)), two(8)
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC) // normalized if there is no such date
	if midnight.Month() != month || midnight.Day() != day {
		return false
	}
	*k = Date{text, midnight.Unix()}
	return true
}

// PlainText returns the index of the first byte from i on that is not plain text within a JSON string. That is a quote,
// a backslash, a control character, or a byte beyond ASCII. It checks eight bytes at a time.
func PlainText(text []byte, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if found := Special(binary.LittleEndian.Uint64(text[i:])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' && text[i] < 0x80 {
		i++
	}
	return i
}

// Special checks eight bytes of text. The lowest bit set in its result is in the first byte that is not plain text. It
// returns 0 if all bytes are plain.
func Special(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^(ones*'"'), w^(ones*'\\')
	// A subtraction sets the high bit of a byte that is less than the subtrahend. Borrows only affect higher bytes, so the
	// lowest set bit is right.
	return (w | (w - ones*' ') | (quote - ones) | (backslash - ones)) & highs
}
