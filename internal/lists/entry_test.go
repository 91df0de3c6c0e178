package lists_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// ISO 3166-1 has 249 officially assigned codes.
func TestCountries(t *testing.T) {
	t.Parallel()
	count := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if _, err := lists.Parse(string(a) + string(b)); err == nil {
				count++
			}
		}
	}
	assert.Equal(t, 249, count)
	for _, code := range []string{"AQ", "AW", "BQ", "CW", "GB", "HK", "PS", "SS", "SX", "TL", "TW", "UM", "VA", "ZW"} {
		_, err := lists.Parse(code)
		require.NoError(t, err, code)
	}
}

// Parse accepts what net/netip accepts, without zones, and codes of two letters, and nothing else. The text stays as it is,
// except that a code is in upper case (open point 28). The meaning (open point 27) covers the address of the text, and parsing
// the meaning's text gives the same meaning.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "192.0.2.7/24", "2001:db8::1", "2001:db8::/32", "::ffff:192.0.2.1", "::ffff:192.0.2.1/120", "::ffff:192.0.2.1/95", "::/0", "fe80::1%eth0",
		"de", "DE", "192.0.2.1/33", "192.0.2.01", " 192.0.2.1", "", "192.0.2.1/-1", "192.0.2.1/", "fe80::%eth0/64", "192.0.2.1/024", "de/24", "/", "D", "DEU", "276",
		"D1", "1D", " D", "D ", "@A", "[A", "\xffA", "A\x00", "Ä", "ı", // which is I in upper case
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, addrErr := netip.ParseAddr(text)
		prefix, prefixErr := netip.ParsePrefix(text)
		isAddr, isRange := addrErr == nil && addr.Zone() == "", prefixErr == nil
		got, err := lists.Parse(text)
		if err != nil {
			require.False(t, isAddr || isRange, "%q", text)
			return
		}
		canonical, spelled := got.Prefix.String(), text
		switch {
		case isAddr:
			require.Equal(t, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), got.Prefix)
		case isRange && prefix.Addr().Is4In6() && prefix.Bits() >= 96:
			require.Equal(t, netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96).Masked(), got.Prefix)
		case isRange:
			require.Equal(t, prefix.Masked(), got.Prefix)
		default:
			require.Regexp(t, "^[A-Za-z]{2}$", text)
			canonical, spelled = strings.ToUpper(text), strings.ToUpper(text)
			require.Equal(t, canonical, got.Name)
		}
		require.Equal(t, spelled, got.Text)
		again, err := lists.Parse(canonical)
		require.NoError(t, err)
		require.Equal(t, got.Meaning, again.Meaning)
	})
}
