package resume

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A stored position that Position cannot have written is refused.
func TestStoredPositions(t *testing.T) {
	t.Parallel()
	const last = `"last":"2026-11-20T12:00:00Z"`
	first := fmt.Sprintf(`"first":%d`, noon.Unix()-1)
	recent := func(b string) string { return `"recent":"` + base64.StdEncoding.EncodeToString([]byte(b)) + `"` }
	// No row in the first second; in the other one, one row at its start, and its sum.
	one := recent("\x00\x00" + "\x01\x01SIPHASH1")
	for _, tc := range []struct {
		members []string
		ok      bool
	}{
		{[]string{`"rows":0`}, true},
		{[]string{`"rows":0`, last}, false},
		{[]string{`"rows":1`, last, first, one}, true},
		{[]string{`"rows":9`, last, first, one, `"days":{"20777":8}`, `"late":{"20777":9}`, `"border":2`}, true},
		{[]string{`"rows":9`, last, first, one, `"days":{"20777":9}`}, false},
		{[]string{`"rows":1`, last, first, one, `"border":3`}, false},
		{[]string{`"rows":1`, last, one}, false}, // the second of the last row is not that of last
		{[]string{`"rows":1`, last, first, recent("\x00\x00" + "\x01\x01SIPHASH")}, false},
		{[]string{`"rows":1`, last, first, recent("\x00\x00" + "\x01\x02SIPHASH1")}, false},
		{[]string{`"rows":1`, last, first, recent("\x00\x00" + "\x01")}, false},
		{[]string{`"rows":0`, last, first, one}, false},
	} {
		var p Position
		text := `{"start":"2026-11-20T11:00:00Z",` + strings.Join(tc.members, ",") + "}"
		if err := json.Unmarshal([]byte(text), &p); tc.ok {
			require.NoError(t, err, text)
		} else {
			require.Error(t, err, text)
			assert.Zero(t, p.Handed)
		}
	}
}

// A position recognizes no more rows than a cursor has room for, and then forgets the oldest second.
func TestTooManyRows(t *testing.T) {
	t.Parallel()
	p := Position{counted: counted{Start: noon}, keep: 3600}
	for i := range 5 {
		p.add(noon.Add(time.Duration(i)*time.Second), Sum(i))
	}
	p.kept = 5_499_999 // as if each of the others were there, which takes seconds and 100 MB
	p.add(noon.Add(5*time.Second), 5)
	assert.False(t, p.Shortened)
	p.add(noon.Add(6*time.Second), 6)
	assert.True(t, p.Shortened)
	assert.Equal(t, noon.Unix()+1, p.First)
	assert.Equal(t, 1, p.Copies(noon.Add(time.Second), 1))
	const inBase64 = (8*5_500_000 + 4*4*24*60*60) * 4 / 3 // with the numbers of rows of four days of seconds
	assert.Less(t, inBase64, 64<<20-10_000, "a cursor of 64 MiB has room for all of them")
}
