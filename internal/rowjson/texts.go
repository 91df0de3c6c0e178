package rowjson

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// texts are the short texts that a column had. A column of countries, rules or actions has few different ones, so each
// string is built once. Columns do not share texts, or the many of one would drive out the few of another.
//
// It is a hash table of its own. A map takes about twice the time: it computes a hash of all bytes for each value, and
// compares strings. Here, the bytes of a short text are its key.
type texts struct {
	places []place // a power of two of them; a text stands where its key says, or at the next place that was free
	shift  int     // 64 - log2(len(places))
	count  int     // texts
	found  int     // values whose text was known, since there were no texts
	skip   int     // the next values, whose texts are not looked for

	first, last uint64 // random, so an attacker cannot choose texts for one place
	seed        maphash.Seed

	unescaped []byte // a buffer
}

// place has a text, or "".
type place struct {
	key
	text string
}

// key has the first and the last 8 bytes of a text, so it is all of a text of up to keySize bytes. For a longer one it
// is a hash.
type key struct{ first, last uint64 }

const (
	keySize    = 16        // bytes of a text that its key can hold
	longText   = 64        // bytes; longer texts differ mostly, so each is built anew
	mostTexts  = 6 << 10   // per column; with 64 bytes each they take 640 KiB
	skipValues = 64 << 10  // of a column whose texts differ mostly
	bufferSize = 256 << 10 // bytes; a larger buffer is not kept
)

func newTexts() *texts {
	return &texts{
		places: make([]place, 64), shift: 64 - 6,
		first: rand.Uint64(), last: rand.Uint64(), seed: maphash.MakeSeed(), //nolint:gosec // no secrets
	}
}

// of returns the text of a value, as Value.String does.
func (t *texts) of(v Value) string {
	if t == nil {
		return v.String()
	}
	text := v.raw
	switch {
	case v.differs:
		text = appendText(t.unescaped[:0], v.raw)
		if cap(text) <= bufferSize {
			t.unescaped = text
		}
	case v.isText() || v.IsNull():
		text = v.text()
	}
	return t.known(keyOf(text), text)
}

// keyOf returns the key of a text.
func keyOf(text []byte) (k key) {
	if n := len(text); n >= 8 {
		return key{binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[n-8:])}
	}
	for i, c := range text {
		k.first |= uint64(c) << (8 * i)
	}
	return k
}

// known returns a text with this key as a string, if possible that of an earlier value.
func (t *texts) known(k key, text []byte) string {
	n := len(text)
	if n == 0 || n > longText {
		return string(text)
	}
	if t.skip > 0 {
		t.skip--
		return string(text)
	}
	if n > keySize {
		k = key{first: maphash.Bytes(t.seed, text)}
	}
	end := len(t.places) - 1
	for i := t.at(k); ; i++ {
		p := &t.places[i&end]
		if p.key == k && len(p.text) == n && (n <= keySize || p.text == string(text)) {
			t.found++
			return p.text
		}
		if p.text == "" {
			return t.add(k, string(text))
		}
	}
}

// atOnce returns a text of up to keySize bytes if it is known and stands where its key says. It is for the most frequent
// case, and small enough to be inlined.
func (t *texts) atOnce(k key, size int) (text string, ok bool) {
	p := &t.places[t.at(k)]
	return p.text, p.key == k && len(p.text) == size
}

// at returns the place that a key says.
func (t *texts) at(k key) int {
	const spread = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	high, low := bits.Mul64(k.first^t.first, k.last^t.last)
	mixed := high ^ low
	return int((mixed ^ mixed>>32) * spread >> (t.shift & 63)) //nolint:gosec // an index
}

// add makes a text known. If there are too many texts, it forgets them all. Then it lets the column rest, if most values
// had a text that was not known. At least one place of four is free.
func (t *texts) add(k key, text string) string {
	switch {
	case t.count == mostTexts:
		if t.found < t.count {
			t.skip = skipValues
		}
		clear(t.places)
		t.count, t.found = 0, 0
	case t.count*4 >= len(t.places)*3:
		all := t.places
		t.places, t.shift = make([]place, 2*len(all)), t.shift-1
		for _, p := range all {
			if p.text != "" {
				t.put(p)
			}
		}
	}
	t.put(place{k, text})
	t.count++
	return text
}

// put stores a text at the first free place.
func (t *texts) put(p place) {
	i, end := t.at(p.key), len(t.places)-1
	for t.places[i&end].text != "" {
		i++
	}
	t.places[i&end] = p
}
