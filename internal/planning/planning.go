// Package planning finds what a plan changes, and in which order. It detects whether a stored plan fits the list, and
// describes to people what it would change.
//
// It knows meanings, texts, ids and numbers. It must not know requests, the SDK's types, guards, or how a plan is
// applied.
//
// Entry points: [Compare], [Steps], [Fingerprint] and [Summary.String].
package planning

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Fingerprint returns a hash of the entries of a list. Two lists have the same fingerprint if they hold the same texts
// under the same ids, in any order. Otherwise the fingerprints differ. of returns id and text of an entry.
//
// It is the SHA-256 of one line for each entry, sorted by id and text: id, blank, text, LF. If the id or the text holds
// a blank or a control character, this line could be read in several ways. Then it has a beginning of its own: a NUL
// byte, the length of the id, a blank, the length of the text, a blank. No other line holds a NUL byte. Stored plans
// hold fingerprints, so no line may change.
func Fingerprint[T any](entries []T, of func(*T) (id, text string)) string {
	type headed struct {
		head  uint64 // of the id
		entry *T
	}
	order := make([]headed, len(entries))
	for i := range entries {
		id, _ := of(&entries[i])
		order[i] = headed{head(id), &entries[i]}
	}
	slices.SortFunc(order, func(a, b headed) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		idA, textA := of(a.entry)
		idB, textB := of(b.entry)
		return cmp.Or(strings.Compare(idA, idB), strings.Compare(textA, textB))
	})
	sum := sha256.New()
	var line []byte
	for _, e := range order {
		id, text := of(e.entry)
		line = line[:0]
		if strings.ContainsFunc(id, splits) || strings.ContainsFunc(text, splits) {
			line = fmt.Appendf(line, "\x00%d %d ", len(id), len(text))
		}
		line = append(append(append(append(line, id...), ' '), text...), '\n')
		_, _ = sum.Write(line)
	}
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

// Summary has the facts of a plan that String prints.
type Summary struct {
	Type, Name, ListID string
	Add                []string
	Remove             int                // number of removed entries
	Removed            func(i int) string // text of the i-th removed entry
	Keep, Peak         int                // entries that stay; the largest number of entries on the way
	Requests           int
	Covering           int // added entries that cover removed ones
	Uncovered          int // entries whose addresses are not covered for a moment
}

// shown is how many added and how many removed entries String lists.
const shown = 20

// String describes in a few lines what would change.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s list %s (%s): ", s.Type, redact.Line(s.Name), redact.Line(s.ListID))
	if len(s.Add)+s.Remove == 0 {
		fmt.Fprintf(&b, "nothing to change, %d entries\n", s.Keep)
		return b.String()
	}
	fmt.Fprintf(&b, "add %d, remove %d, keep %d; %d entries become %d, %d at most on the way; %d requests\n",
		len(s.Add), s.Remove, s.Keep, s.Keep+s.Remove, s.Keep+len(s.Add), s.Peak, s.Requests)
	if s.Uncovered > 0 {
		fmt.Fprintf(&b, "the list is full: the addresses of %d entries are not covered for a moment\n", s.Uncovered)
	}
	if s.Covering > 0 && s.Remove > 0 {
		fmt.Fprintf(&b, "%d added entries cover removed ones; unless Apply waits and a task is named, they must be in effect when their call is accepted\n", s.Covering)
	}
	list(&b, "+", len(s.Add), func(i int) string { return s.Add[i] })
	list(&b, "-", s.Remove, s.Removed)
	return b.String()
}

// list writes the first n entries, and how many more there are.
func list(b *strings.Builder, sign string, n int, text func(i int) string) {
	for i := range min(n, shown) {
		b.WriteString(sign + " " + redact.Line(text(i)) + "\n")
	}
	if n > shown {
		fmt.Fprintf(b, "%s and %d more\n", sign, n-shown)
	}
}
