package lists

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Fingerprint returns a hash of a list. Two lists have the same fingerprint if they have the same type, and hold the
// same texts under the same ids, in any order.
//
// It is the SHA-256 of the type, LF, and one line for each entry, sorted by id and text: id, blank, text, LF. If the id
// or the text holds a blank or a control character, this line could be read in several ways. Then it has a beginning of
// its own: a NUL byte, the length of the id, a blank, the length of the text, a blank. No other line holds a NUL byte.
func Fingerprint(listType string, held []Entry) string {
	type headed struct {
		head  uint64 // of the id
		entry *Entry
	}
	order := make([]headed, len(held))
	for i := range held {
		order[i] = headed{head(held[i].ID), &held[i]}
	}
	slices.SortFunc(order, func(a, b headed) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(strings.Compare(a.entry.ID, b.entry.ID), strings.Compare(a.entry.Text, b.entry.Text))
	})
	sum := sha256.New()
	line := []byte(listType + "\n")
	for _, e := range order {
		_, _ = sum.Write(line)
		line = line[:0]
		id, text := e.entry.ID, e.entry.Text
		if strings.ContainsFunc(id, splits) || strings.ContainsFunc(text, splits) {
			line = fmt.Appendf(line, "\x00%d %d ", len(id), len(text))
		}
		line = append(append(append(append(line, id...), ' '), text...), '\n')
	}
	_, _ = sum.Write(line)
	return hex.EncodeToString(sum.Sum(nil))
}

// splits reports whether a line with this character could be read in several ways. ASCII is enough, because the bytes of
// a line that have a meaning are ASCII.
func splits(r rune) bool { return r <= ' ' || r == 0x7f }

// head returns the first 8 bytes of an id as a number. If the numbers of two ids differ, they sort like the ids. To
// compare them is much faster, and random ids differ in their first bytes.
func head(id string) uint64 {
	var first [8]byte
	copy(first[:], id)
	return binary.BigEndian.Uint64(first[:])
}
