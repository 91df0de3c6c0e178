package lists

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// Fingerprint returns a hash of a list. Two lists have the same fingerprint if they have the same type and the same
// texts with the same IDs, in any order. It is the SHA-256 of the type and of each ID and text, sorted by ID and text,
// each preceded by its length. Stored plans contain fingerprints, so the algorithm must not change.
func Fingerprint(listType string, held []Entry) string {
	type headed struct {
		head  uint64 // the first 8 bytes of the ID, because comparing numbers is much faster
		entry *Entry
	}
	order := make([]headed, len(held))
	for i := range held {
		var first [8]byte
		copy(first[:], held[i].ID)
		order[i] = headed{binary.BigEndian.Uint64(first[:]), &held[i]}
	}
	slices.SortFunc(order, func(a, b headed) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(strings.Compare(a.entry.ID, b.entry.ID), strings.Compare(a.entry.Text, b.entry.Text))
	})
	sum := sha256.New()
	line := appendText(nil, listType)
	for _, e := range order {
		_, _ = sum.Write(line)
		line = appendText(appendText(line[:0], e.entry.ID), e.entry.Text)
	}
	_, _ = sum.Write(line)
	return hex.EncodeToString(sum.Sum(nil))
}

func appendText(line []byte, text string) []byte {
	return append(binary.AppendUvarint(line, uint64(len(text))), text...)
}
