package rowjson

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// An address that is read without making a text of it is what the library makes of the text. Only IPv6 addresses with a
// dot or a zone are left to the library.
func FuzzPlainAddresses(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "0.0.0.0", "255.255.255.255", "256.0.0.1", "01.2.3.4", "1.2.3", "1.2.3.4.5", "1..2.3", "2001:db8::1", "::", "1::", "::1", ":1", "1:", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1::2::3", "::1::2", ":::", "12345::", "ABCD:ef01::", "fe80::1%eth0", "::ffff:192.0.2.1", "g::", "", ".", "1.2.3.04",
		"9.9.9.9", "19.99.109.199", "1.2.3.", "1.2.3.4.", "255.255.255.2550",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(samePlainAddress)
}

// The same for addresses in which one byte is another one, missing or too many.
func TestPlainAddressesWithOneOtherByte(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"192.0.2.1", "203.0.113.255", "2001:db8::1", "::1:2", "1:2::", "2001:db8:1:2:3:4:5:6", "::2:3:4:5:6:7:8"} {
		for i := range len(text) {
			samePlainAddress(t, []byte(text[:i]+text[i+1:]))
			for b := range 256 {
				samePlainAddress(t, []byte(text[:i]+string([]byte{byte(b)})+text[i+1:]))
				samePlainAddress(t, []byte(text[:i]+string([]byte{byte(b)})+text[i:]))
			}
		}
	}
}

func samePlainAddress(t *testing.T, text []byte) {
	t.Helper()
	if bytes.IndexByte(text, '"') >= 0 {
		return
	}
	want, err := netip.ParseAddr(string(text))
	quoted := []byte(`["` + string(text) + `"]`)
	addr, end := ipv4At(quoted, 1)
	require.Equal(t, err == nil && want.Is4(), end > 0, "%q", text)
	if end > 0 {
		require.Equal(t, want, addr)
		require.Equal(t, len(quoted)-1, end)
	}
	addr, end = ipv6At(quoted, 1)
	require.Equal(t, err == nil && want.Is6() && !bytes.ContainsAny(text, ".%"), end > 0, "%q", text)
	if end > 0 {
		require.Equal(t, want, addr)
		require.Equal(t, len(quoted)-1, end)
	}
}
