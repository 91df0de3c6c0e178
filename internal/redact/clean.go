package redact

import (
	"math"
	"strings"
)

// Most texts hold neither a secret nor anything that could be a form of one. clean detects most of these texts without
// allocating. It never decides that a text holds a secret: every other text is searched in full.

// class is a set of the roles that a byte can have.
type class uint8

const (
	intro    class = 1 << iota // begins an escape
	sign                       // may be part of a form of a secret: a byte of a secret or of an escape
	digit64                    // is a digit of Base64
	lineFeed                   // may stand between digits of Base64
	atSign                     // may begin an at sign: the sign itself, or an escape
	slash                      // may begin a slash: the slash itself, or an escape
)

// filter is what clean knows about the secrets.
type filter struct {
	texts   []string // a text without any of these holds no secret that is written as itself
	classes [256]class
	least   int // no form of a secret is shorter
	base64  int // no form of a secret in Base64 has fewer digits
}

func newFilter(hidden []Hidden, shortest int) *filter {
	f := &filter{base64: math.MaxInt}
	for c := range f.classes {
		c := byte(c)
		f.add(c, intro|slash|atSign, isIntro[c])
		f.add(c, slash, c == '/')
		f.add(c, atSign, c == '@')
		f.add(c, sign, ' ' <= c && c < 0x7f || c == '\t' || c == '\r' || c == '\n') // the bytes of all escapes
		f.add(c, digit64, values[c] != none)
		f.add(c, lineFeed, c == '\r' || c == '\n')
	}
	for _, h := range hidden {
		text := h.Secret.Reveal()
		if text != "" && len(text) < Least {
			text = h.Before + text
		}
		if len(text) < Least {
			continue
		}
		f.texts = append(f.texts, text)
		for _, c := range []byte(text) {
			f.add(c, sign, true)
		}
		// An escape holds at most six bytes, and one of so many is an entity with a name. None has less than five bytes for them.
		f.least, f.base64 = (shortest*5+5)/6, leastRun(shortest)
	}
	return f
}

func (f *filter) add(c byte, role class, has bool) {
	if has {
		f.classes[c] |= role
	}
}

// leastRun returns the number of Base64 digits that hold so many bytes.
func leastRun(size int) int { return (size*8 + 5) / 6 }

// clean reports whether a text certainly holds neither a secret nor user information, in any form. The text must not
// be cut off. It returns false for every text with the first byte of an escape.
func (f *filter) clean(text string) bool {
	begin, digits, mail := 0, 0, false // the current run of Base64: its first byte and the number of its digits
	for i := range len(text) {
		of := f.classes[text[i]]
		switch {
		case of&digit64 != 0 && of&intro == 0:
			if digits == 0 {
				begin = i
			}
			digits++
			continue
		case of&intro != 0:
			return false
		case of&lineFeed != 0:
			continue
		}
		mail = mail || of&atSign != 0
		if digits >= f.base64 && !f.cleanRun(text[begin:i]) {
			return false
		}
		digits = 0
	}
	if digits >= f.base64 && !f.cleanRun(text[begin:]) || mail && strings.Contains(text, "//") {
		return false
	}
	for _, secret := range f.texts {
		if strings.Contains(text, secret) {
			return false
		}
	}
	return true
}

// cleanRun is clean for what a run of Base64 decodes to. A group of four may begin at any of the first four digits.
func (f *filter) cleanRun(run string) bool {
	for skip := range 4 {
		if !f.cleanBytes(run, skip) {
			return false
		}
	}
	return true
}

// cleanBytes decodes a run from one of its digits on. A form of a secret is a stretch of signs, and so is a Base64 text
// within. User information stands between two slashes in one stretch and an at sign.
func (f *filter) cleanBytes(run string, skip int) bool {
	bits, have := uint32(0), 0
	stretch, slashes, url := 0, 0, false // of the current stretch: its length and its slashes
	for i := range len(run) {
		value := values[run[i]]
		if value == none { // a line end
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if bits, have = bits<<6|uint32(value), have+6; have < 8 {
			continue
		}
		have -= 8
		of := f.classes[byte(bits>>have)] //nolint:gosec // the lowest eight bits
		if url && of&atSign != 0 {
			return false
		}
		if of&sign == 0 {
			stretch, slashes = 0, 0
			continue
		}
		stretch++
		if of&slash != 0 {
			slashes++
		}
		url = url || slashes > 1
		if stretch >= f.least {
			return false
		}
	}
	return true
}
