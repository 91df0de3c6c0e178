package rowjson

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// value returns the text as a Value.
func value(text string) Value { return Value{raw: []byte(`"` + text + `"`)} }

// A column of up to 4,096 different short texts makes no new string once each has come, whichever of their bytes differ.
func TestTextsThatDifferSomewhere(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	const different = 4096
	forms := map[string]string{
		"the last bytes": strings.Repeat("x", 12) + "%04d", "the first bytes": "%04d" + strings.Repeat("x", 12),
		"the middle of 40": strings.Repeat("x", 18) + "%04d" + strings.Repeat("x", 18), "the middle of 12": "xxxx%04dxxxx", "all of 4": "%04d",
		"64 bytes": "%04d" + strings.Repeat("x", 60), "the middle of 24": strings.Repeat("x", 10) + "%04d" + strings.Repeat("x", 10),
	}
	for name, form := range forms {
		all := newTexts()
		values := make([]Value, different)
		for i := range values {
			values[i] = value(fmt.Sprintf(form, i))
			assert.Equal(t, fmt.Sprintf(form, i), all.of(values[i]), name)
		}
		allocs := testing.AllocsPerRun(1, func() {
			for _, v := range values {
				_ = all.of(v)
			}
		})
		assert.Zero(t, allocs, name)
		var into string
		read := readText(&into, all)
		for i, v := range values {
			require.Equal(t, fmt.Sprintf(form, i), all.of(v), name)
			_, written := read(append(v.raw, `,"behind"`...), 0)
			require.True(t, written, name)
			require.Equal(t, fmt.Sprintf(form, i), into, name)
		}

		// A text stands near the place that its key says, so it is found in a few steps.
		steps := 0
		for i, p := range all.places {
			if p.text != "" {
				steps += (i - all.at(p.key)) & (len(all.places) - 1)
			}
		}
		assert.Less(t, steps, 4*different, name)
	}
}

// If there are too many texts, a column whose texts come again goes on with new ones. A column whose texts differ rests.
func TestTooManyTexts(t *testing.T) {
	t.Parallel()
	for times, rests := range map[int]bool{1: true, 2: false, 3: false} {
		all := newTexts()
		for i := range mostTexts + 1 {
			for range times {
				_ = all.of(value(strconv.Itoa(i)))
			}
		}
		assert.Equal(t, rests, all.skip > 0, times)
		assert.Equal(t, 1, all.count, "the others are forgotten")
		for _, text := range []string{"mostTexts", "7", strings.Repeat("x", 40)} {
			assert.Equal(t, text, all.of(value(text)), "a column that rests reads its texts, too")
		}
	}
}

// A column whose texts all differ makes one string for each, and keeps a bounded number of them. When its texts come
// again, they are known again.
func TestTextsThatAllDiffer(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	all := newTexts()
	next, raw := int64(1e15), make([]byte, 0, 64)
	read := func() {
		raw = append(strconv.AppendInt(append(raw[:0], `"7700`...), next, 10), `0077"`...)
		next++
		_ = all.of(Value{raw: raw})
	}
	for range 2 * mostTexts {
		read()
	}
	assert.InDelta(t, 1, testing.AllocsPerRun(2*skipValues, read), 0)
	assert.LessOrEqual(t, all.count, mostTexts)
	assert.LessOrEqual(t, len(all.places), 8192)

	again := value("942100")
	for range skipValues + 2 {
		assert.Equal(t, "942100", all.of(again))
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = all.of(again) }))
}

// Different texts are never taken for each other, though many have the same key or stand at the same place.
func TestTextsThatAreAlike(t *testing.T) {
	t.Parallel()
	all := newTexts()
	var texts []string
	for n := range longText + 3 {
		texts = append(texts, strings.Repeat("a", n), strings.Repeat("b", n))
		if n > 16 {
			texts = append(texts, strings.Repeat("a", 8)+strings.Repeat("b", n-16)+strings.Repeat("a", 8))
		}
	}
	var into string
	read := readText(&into, all)
	for range 3 {
		for _, text := range texts {
			require.Equal(t, text, all.of(value(text)))
			_, written := read([]byte(`"`+text+`","behind"`), 0)
			require.True(t, written, text)
			require.Equal(t, text, into)
		}
	}
	assert.Equal(t, "a\x00", all.of(Value{raw: []byte(`"a\u0000"`), differs: true}))
	assert.Equal(t, "a", all.of(value("a")))
	assert.Equal(t, "a\x00", all.of(Value{raw: []byte(`"a\u0000"`), differs: true}))
}
