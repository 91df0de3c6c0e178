package rowjson

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// texts interns the short texts of a column. A column of countries, rules or actions has few different texts, so each
// string is allocated only once. Each column has its own, so that many texts in one column do not evict the few of
// another.
//
// It is a custom hash table, because a map takes about twice the time: it hashes and compares strings. Here, the bytes
// of a short text are its key.
type texts struct {
	places []place // hash table with linear probing; its length is a power of two
	shift  int     // 64 - log2(len(places))
	count  int     // texts
	found  int     // values whose text was known, since the table was last cleared
	skip   int     // number of next values that are not interned

	first, last uint64 // random, so that an attacker cannot choose texts that collide
	seed        maphash.Seed

	unescaped []byte // a buffer
}

// place is a slot of the hash table. It is free if text is "".
type place struct {
	key
	text string
}

// key holds the first and the last 8 bytes of a text, which identify a text of known length up to keySize. For a longer
// text it is a hash.
type key struct{ first, last uint64 }

const (
	keySize    = 16        // bytes of a text that fit into its key
	longText   = 64        // bytes; longer texts mostly differ, so they are not interned
	mostTexts  = 6 << 10   // per column; with 64 bytes each they take 640 KiB
	skipValues = 64 << 10  // values to skip in a column whose texts mostly differ
	bufferSize = 256 << 10 // bytes; a larger buffer is not kept
)

func newTexts() *texts {
	return &texts{
		places: make([]place, 64), shift: 64 - 6,
		first: rand.Uint64(), last: rand.Uint64(), seed: maphash.MakeSeed(),
	}
}

// of returns the text of a value like Value.String, possibly interned.
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

// known returns the text with this key as a string, if possible that of an earlier value.
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

// atOnce returns a text of up to keySize bytes if it is known and in its first slot. It is for the most frequent case,
// and small enough to be inlined.
func (t *texts) atOnce(k key, size int) (text string, ok bool) {
	p := &t.places[t.at(k)]
	return p.text, p.key == k && len(p.text) == size
}

// at returns the index of a key's first slot.
func (t *texts) at(k key) int {
	const spread = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	high, low := bits.Mul64(k.first^t.first, k.last^t.last)
	mixed := high ^ low
	return int((mixed ^ mixed>>32) * spread >> (t.shift & 63)) //nolint:gosec // an index
}

// add adds a text to the table. If there are too many texts, it first removes all of them and, if fewer values had
// known texts than new ones, stops interning for a while. At least a quarter of the slots stays free.
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

// put stores a text in the first free slot.
func (t *texts) put(p place) {
	i, end := t.at(p.key), len(t.places)-1
	for t.places[i&end].text != "" {
		i++
	}
	t.places[i&end] = p
}
