package resume_test

import (
	"encoding/json"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/resume"
)

// row is a row with a time in milliseconds after a full second, and a name as its content.
type row struct {
	ms   int64
	name string
}

var second = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (r row) at() time.Time { return second.Add(time.Duration(r.ms) * time.Millisecond) }

func (r row) sum() resume.Sum { return sumOf(r.name) }

// sumOf returns a checksum.
func sumOf(name string) resume.Sum {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return resume.Sum(h.Sum64())
}

// fromOf returns where the next request begins.
func fromOf(p *resume.Position) int64 { return p.Latest.Unix() - 2 }

// read replays a response to a position and returns the names of the new rows.
func read(t *testing.T, p *resume.Position, rows ...row) string {
	t.Helper()
	var names []string
	replay := p.Replay(fromOf(p), second.AddDate(1, 0, 0).Unix())
	for _, r := range rows {
		isNew, err := replay.Take(r.at(), r.sum())
		require.NoError(t, err)
		if isNew {
			names = append(names, r.name)
		}
	}
	return strings.Join(names, " ")
}

// A response repeats rows of the last two seconds, and Take recognizes them.
func TestWhatIsNew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, second []row
		want          string // of the second response
	}{
		"nothing before": {nil, []row{{0, "a"}, {1, "b"}}, "a b"},
		"the same":       {[]row{{0, "a"}, {1, "b"}}, []row{{0, "a"}, {1, "b"}}, ""},
		"and more":       {[]row{{0, "a"}, {1, "b"}}, []row{{0, "a"}, {1, "b"}, {2, "c"}, {9000, "d"}}, "c d"},
		"ties in another order, of which some were not reached": {
			[]row{{5, "a"}, {5, "b"}}, []row{{5, "c"}, {5, "b"}, {5, "d"}, {5, "a"}}, "c d",
		},
		"equal rows, as often as they come":                  {[]row{{5, "a"}, {5, "a"}}, []row{{5, "a"}, {5, "a"}, {5, "a"}, {5, "b"}}, "a b"},
		"a late row in between":                              {[]row{{5, "a"}, {900, "b"}}, []row{{5, "a"}, {400, "late"}, {900, "b"}, {901, "c"}}, "late c"},
		"of the second before the last":                      {[]row{{500, "a"}, {1500, "b"}}, []row{{500, "a"}, {500, "c"}, {1500, "b"}}, "c"},
		"earlier than asked for":                             {[]row{{500, "a"}, {2500, "b"}}, []row{{500, "a"}, {999, "x"}, {2500, "b"}, {2600, "c"}}, "c"},
		"the first of the second before":                     {[]row{{1000, "a"}, {2999, "b"}}, []row{{1000, "a"}, {2999, "b"}}, ""},
		"the same content at another time":                   {[]row{{0, "a"}, {4000, "a"}}, []row{{4000, "a"}, {4000, "a"}, {7000, "a"}}, "a a"},
		"rows that are gone":                                 {[]row{{0, "a"}, {1, "b"}}, []row{{1, "b"}, {2, "c"}}, "c"},
		"two seconds later, of which the first is forgotten": {[]row{{0, "a"}, {2500, "b"}}, []row{{1500, "a"}, {2500, "b"}}, "a"},
		"an hour later, of the same millisecond":             {[]row{{0, "a"}, {3_600_000, "b"}}, []row{{3_599_000, "a"}, {3_600_000, "b"}}, "a"},
		"before 1970": {
			[]row{{-2_000_000_000_500, "a"}}, []row{{-2_000_000_000_500, "a"}, {-2_000_000_000_499, "b"}}, "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p resume.Position
			read(t, &p, tc.first...)
			assert.Equal(t, tc.want, read(t, stored(t, &p), tc.second...), "from a stored position")
			rows := p.Handed
			assert.Equal(t, tc.want, read(t, &p, tc.second...))
			assert.Equal(t, rows+int64(len(strings.Fields(tc.want))), p.Handed)
			assert.Empty(t, read(t, &p, tc.second...), "once more")
		})
	}
}

func stored(t *testing.T, p *resume.Position) *resume.Position {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	read := new(resume.Position)
	require.NoError(t, json.Unmarshal(text, read))
	again, err := json.Marshal(read)
	require.NoError(t, err)
	assert.JSONEq(t, string(text), string(again))
	return read
}
