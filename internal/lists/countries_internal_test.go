package lists

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table has 249 codes, in order and without repetition, each of two upper-case letters.
func TestTheTableOfCountries(t *testing.T) {
	t.Parallel()
	all := strings.Split(countries, " ")
	assert.Len(t, all, 249)
	assert.True(t, slices.IsSorted(all))
	assert.Len(t, slices.Compact(slices.Clone(all)), 249)
	for _, code := range all {
		require.Regexp(t, "^[A-Z][A-Z]$", code)
		require.True(t, isCountry(code), code)
	}
	assert.Equal(t, []string{"AD", "AE", "AF"}, all[:3])
	assert.Equal(t, []string{"ZA", "ZM", "ZW"}, all[246:])
}

// Neither codes that the standard does not assign, nor texts that are no codes, are countries.
func TestWhatIsNoCountry(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"", "D", "DEU", "de", " D", "D ", "D1", "1D", "@A", "[A", "\xffA", "A\x00", "Ä", "I", // ı in upper case is I
		"XX", "XK", "EU", "UK", "AC", "AN", "CS", "SU", "YU", "NT", "UN", "ZZ", "AA", "QQ",
	} {
		assert.False(t, isCountry(code), "%q", code)
	}
}
