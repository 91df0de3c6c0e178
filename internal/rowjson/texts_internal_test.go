package rowjson

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A column of up to 4,096 different short texts makes no new string once each has come, whichever of their bytes differ.
// A column whose texts all differ keeps a bounded number of them, and knows texts again that come again.
func TestTextsOfAColumnAreBuiltOnce(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	value := func(form string, i int) Value { return Value{raw: fmt.Appendf(nil, `"`+form+`"`, i)} }
	for _, form := range []string{"%04d", "xxxx%04dxxxx", strings.Repeat("x", 12) + "%04d", "%04d" + strings.Repeat("x", 60)} {
		all, values := newTexts(), make([]Value, 4096)
		for i := range values {
			values[i] = value(form, i)
			assert.Equal(t, fmt.Sprintf(form, i), all.of(values[i]))
		}
		assert.Zero(t, testing.AllocsPerRun(10, func() {
			for _, v := range values {
				_ = all.of(v)
			}
		}), form)
	}
	all := newTexts()
	for i := range 2*mostTexts + skipValues {
		_ = all.of(value("%05d", i))
		assert.LessOrEqual(t, len(all.places), 8192)
	}
	again := value("%05d", 7)
	for range skipValues + 2 {
		_ = all.of(again)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = all.of(again) }))
}
