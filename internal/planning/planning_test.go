package planning_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/planning"
)

type entry struct{ id, text string }

func of(e *entry) (id, text string) { return e.id, e.text }

// A fingerprint depends on texts and ids, but not on their order. Stored plans hold it, so it must never change: it is
// the SHA-256 of lines of id, blank and text, sorted by id.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	list := []entry{{"b", "192.0.2.2"}, {"a", "192.0.2.3"}, {"a", "192.0.2.1"}}
	before := slices.Clone(list)
	// printf 'a 192.0.2.1\na 192.0.2.3\nb 192.0.2.2\n' | sha256sum
	const want = "21c56dffbb586d6a5b5344ec83b7d0eca7847b1fe8e31ea4926df2f077f93b1a"
	assert.Equal(t, want, planning.Fingerprint(list, of))
	assert.Equal(t, before, list)
	slices.Reverse(list)
	assert.Equal(t, want, planning.Fingerprint(list, of))
	for _, other := range [][]entry{nil, list[:2], {{"b", "192.0.2.2"}, {"c", "192.0.2.3"}, {"a", "192.0.2.1"}}, {{"b", "192.0.2.2"}, {"a", "192.0.2.4"}, {"a", "192.0.2.1"}}} {
		assert.NotEqual(t, want, planning.Fingerprint(other, of))
	}
	assert.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", planning.Fingerprint(nil, of), "of nothing")
}

// Ids sort by their bytes, whatever their length and however many of their first bytes are the same.
func TestFingerprintsOfSimilarIds(t *testing.T) {
	t.Parallel()
	sorted := []string{"1234567", "12345678", "12345678 ", "123456780", "12345679", "a", "a\x00", "a\x00\x00\x00\x00\x00\x00\x00\x00b", "a\x00b", "ab", "\xc3\xa9", "\xff"}
	var list []entry
	for _, id := range sorted {
		list = append(list, entry{id, "DE"})
	}
	// printf '%b DE\n' 1234567 12345678 '\00009 2 12345678 ' 123456780 12345679 a '\00002 2 a\0' \
	//   '\000010 2 a\0\0\0\0\0\0\0\0b' '\00003 2 a\0b' ab '\xc3\xa9' '\xff' | sha256sum
	const want = "81f14df325d9f4c08b15f10aff7230f9ad43fdc902eb5945f51128e3494af3c9"
	assert.Equal(t, want, planning.Fingerprint(list, of))
	slices.Reverse(list)
	assert.Equal(t, want, planning.Fingerprint(list, of))
}

// Two lists with other ids or other texts have other fingerprints, also if their entries hold blanks or line ends.
func TestFingerprintsOfOddEntries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		list []entry
		want string
	}{
		// printf '\0003 1 a b c\n' | sha256sum
		{[]entry{{"a b", "c"}}, "041d7df109ac54ca562c2cad962904b066f22eb6b08f7934f2a8e56bf3dd4a83"},
		// printf '\0001 3 a b c\n' | sha256sum
		{[]entry{{"a", "b c"}}, "5e2b573cab367bf7f3a93a8489bbc647e51730f794321918fc35137daa1e95fe"},
		// printf '\0001 5 a b\nc d\n' | sha256sum
		{[]entry{{"a", "b\nc d"}}, "bcbd078e4c96e81f40163c8ed0de7f8cb7c9398456ad84e8c3fb5d0cb722e7d5"},
		// printf 'a b\nc d\n' | sha256sum
		{[]entry{{"a", "b"}, {"c", "d"}}, "4572063f432245d2918199d6696e2ec075d668821b6907e6977111263c20d6c4"},
		// printf '\0001 2 a b\177\n' | sha256sum
		{[]entry{{"a", "b\x7f"}}, "a01a428ab8b7f1b55d0b41e3c528ba539b4418f081efc83d2c00763cab61f9cb"},
		// printf 'a \n' | sha256sum
		{[]entry{{"a", ""}}, "19ae96e7938ec564866a1bb552e51bc3f1b9aa32c5221f3e8c3a75d0080c7004"},
		// printf ' a\n' | sha256sum
		{[]entry{{"", "a"}}, "a33d8e3f38b615f38218d742aa47a3034330b511e6813b9e3ca9480ad651f42e"},
	} {
		assert.Equal(t, tt.want, planning.Fingerprint(tt.list, of), "%q", tt.list)
	}
}

// A plan as people see it: numbers, remarks on them, and at most 20 added and 20 removed entries.
func TestSummaries(t *testing.T) {
	t.Parallel()
	texts := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("198.18.0.%d", i))
		}
		return all
	}
	lines := func(sign string, n int) string {
		var b strings.Builder
		for _, text := range texts(n) {
			b.WriteString(sign + " " + text + "\n")
		}
		return b.String()
	}
	for _, tt := range []struct {
		s    planning.Summary
		want string
	}{
		{planning.Summary{Keep: 4, Uncovered: 1, Covering: 1}, "nothing to change, 4 entries\n"},
		{
			planning.Summary{Add: texts(2), Remove: 1, Keep: 4, Peak: 7, Requests: 2, Uncovered: 1, Covering: 1},
			"add 2, remove 1, keep 4; 5 entries become 6, 7 at most on the way; 2 requests\n" +
				"the list is full: the addresses of 1 entries are not covered for a moment\n" +
				"1 added entries cover removed ones; unless Apply waits and a task is named, they must be in effect when their call is accepted\n" +
				lines("+", 2) + lines("-", 1),
		},
		{
			planning.Summary{Add: texts(1), Remove: 1},
			"add 1, remove 1, keep 0; 1 entries become 1, 0 at most on the way; 0 requests\n" + lines("+", 1) + lines("-", 1),
		},
		{
			planning.Summary{Add: texts(20), Covering: 1},
			"add 20, remove 0, keep 0; 0 entries become 20, 0 at most on the way; 0 requests\n" + lines("+", 20),
		},
		{
			planning.Summary{Add: texts(21), Remove: 23},
			"add 21, remove 23, keep 0; 23 entries become 21, 0 at most on the way; 0 requests\n" + lines("+", 20) + "+ and 1 more\n" +
				lines("-", 20) + "- and 3 more\n",
		},
		{
			planning.Summary{Remove: 20},
			"add 0, remove 20, keep 0; 20 entries become 0, 0 at most on the way; 0 requests\n" + lines("-", 20),
		},
	} {
		tt.s.Type, tt.s.Name, tt.s.ListID, tt.s.Removed = "IP", "n\nm", "l", func(i int) string { return texts(i + 1)[i] }
		assert.Equal(t, `IP list "n\nm" (l): `+tt.want, tt.s.String())
	}
}
