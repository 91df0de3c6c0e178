package resume_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/resume"
)

// A clone does not change with its original.
func TestClone(t *testing.T) {
	t.Parallel()
	var p resume.Position
	read(t, &p, row{0, "a"}, row{1500, "b"})
	clone := p.Clone()
	read(t, &p, row{1500, "b"}, row{1500, "c"}, row{9000, "d"})
	assert.Equal(t, int64(2), clone.Handed)
	assert.Equal(t, row{ms: 1500}.at(), clone.Latest)
	assert.Equal(t, "c d", read(t, clone, row{500, "x"}, row{1500, "b"}, row{1500, "c"}, row{9000, "d"})[len("x "):])
}

// The size of a position does not grow with the number of seconds.
func TestMemoryIsThatOfTwoSeconds(t *testing.T) {
	t.Parallel()
	size := func(seconds, perSecond int) int {
		rows := make([]row, 0, seconds*perSecond)
		for i := range seconds * perSecond {
			rows = append(rows, row{int64(i * 1000 / perSecond), string(rune('a'+i%26)) + time.Duration(i).String()})
		}
		var p resume.Position
		read(t, &p, rows...)
		text, err := json.Marshal(&p)
		require.NoError(t, err)
		return len(text)
	}
	short := size(3, 50)
	assert.InDelta(t, short, size(100, 50), 100)
	assert.Less(t, short, 2*50*22+200)
}

// A stored position that Position cannot have written is refused.
func TestStoredPositions(t *testing.T) {
	t.Parallel()
	const start, last = `"start":"2026-11-20T11:00:00Z"`, `"last":"2026-11-20T12:00:00Z"`
	first := fmt.Sprintf(`"first":%d`, second.Unix()-1)
	recent := func(b string) string { return `"recent":"` + base64.StdEncoding.EncodeToString([]byte(b)) + `"` }
	// No row in the first second; in the other one, one row at its start, and its sum.
	one := recent("\x00\x00" + "\x01\x01SIPHASH1")
	for _, tc := range []struct {
		members []string
		ok      bool
	}{
		{[]string{`"rows":0`}, true},
		{[]string{`"rows":0`, last}, false},
		{[]string{`"rows":-1`}, false},
		{[]string{`"rows":1`}, false},
		{[]string{`"rows":1.5`}, false},
		{[]string{`"rows":1`, last, first}, false},
		{[]string{`"rows":1`, last, first, one}, true},
		{[]string{`"rows":9`, last, first, one, `"days":{"20777":8}`, `"late":{"20777":9}`, `"border":2`}, true},
		{[]string{`"rows":9`, last, first, one, `"days":{"20777":9}`}, false},
		{[]string{`"rows":1`, last, first, one, `"border":3`}, false},
		{[]string{`"rows":1`, last, first, one, `"border":-1`}, false},
		{[]string{`"rows":1`, last, one}, false}, // the second of the last row is not that of last
		{[]string{`"rows":1`, last, first, recent("\x00\x00" + "\x01\x01SIPHASH")}, false},
		{[]string{`"rows":1`, last, first, recent("\x00\x00" + "\x01\x02SIPHASH1")}, false},
		{[]string{`"rows":1`, last, first, recent("\x00\x00" + "\x01")}, false},
		{[]string{`"rows":0`, last, first, one}, false},
		{[]string{`"rows":1`, last, first, `"recent":"?"`}, false},
	} {
		var p resume.Position
		text := "{" + start + "," + strings.Join(tc.members, ",") + "}"
		if err := json.Unmarshal([]byte(text), &p); tc.ok {
			require.NoError(t, err, text)
		} else {
			require.Error(t, err, text)
			assert.Zero(t, p.Handed)
		}
	}
	assert.Error(t, json.Unmarshal([]byte(`[]`), &resume.Position{}))
}

// A position recognizes no more rows than a cursor has room for, and the seconds of the last rows in any case.
func TestTooManyRows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs 5,500,000 rows")
	}
	var p resume.Position
	p.Start = second
	run := resume.Run{Source: endless{}, Position: &p, End: second.Add(time.Hour).Unix(), Lookback: time.Hour}
	_, err := run.All()
	require.NoError(t, err)
	assert.True(t, run.Position.Shortened)
	text, err := json.Marshal(run.Position)
	require.NoError(t, err)
	assert.Less(t, len(text), 64<<20)
	assert.Greater(t, len(text), 50<<20)
}

// endless is a source of 6,000,000 rows.
type endless struct{ resume.Source }

func (endless) Total(int64, int64) (int64, time.Time, error) { return 6_000_000, second, nil }
func (endless) Limit(total int64) int64                      { return total }
func (endless) KeptFrom() int64                              { return 0 }
func (endless) Read(_, _, _ int64, replay *resume.Replay) (int64, error) {
	for i := range 6_000_000 {
		if _, err := replay.Take(second.Add(time.Duration(i)*time.Second/2000), resume.Sum(i)); err != nil {
			return 0, err
		}
	}
	return 6_000_000, nil
}
