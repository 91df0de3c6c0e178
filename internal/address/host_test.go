package address_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// All spellings of a host share one purge budget. The origin is what net/http dials, so it keeps a dot at the end and
// the letter case of a zone.
func TestSpellingsOfAHost(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, tt := range []struct {
		host      string // as net/http dials it
		spellings map[string]string
	}{
		{"api.example.com", map[string]string{
			"https://api.example.com": "", "https://API.Example.COM": "", "HTTPS://api.example.com:443": "", "https://api.example.com:0443": "",
			"https://api.example.com:": "", "https://api.example.com./": "api.example.com.", "https://api.example.com.:00443": "api.example.com.",
		}},
		{"api.example.com:8443", map[string]string{
			"https://api.example.com:8443": "", "https://api.example.com:08443": "", "https://API.example.com.:8443": "api.example.com.:8443",
		}},
		{"xn--bcher-kva.example", map[string]string{"https://xn--bcher-kva.example": "", "https://XN--Bcher-Kva.example:443": ""}},
		{"[2001:db8::1]", map[string]string{
			"https://[2001:db8::1]": "", "https://[2001:DB8:0:0:0:0:0:1]:443": "", "https://[2001:0db8::0001]": "",
		}},
		{"192.0.2.1", map[string]string{"https://192.0.2.1": "", "https://[::ffff:192.0.2.1]": "[::ffff:192.0.2.1]", "https://[::ffff:c000:201]:443": "[::ffff:192.0.2.1]"}},
		{"[fe80::1%Eth0]", map[string]string{"https://[fe80::1%25Eth0]": "", "https://[FE80:0::1%25Eth0]": "", "https://[fe80::1%25eth0]": "[fe80::1%eth0]"}},
	} {
		key := ""
		for spelling, host := range tt.spellings {
			b, err := address.Parse(spelling, "acme", false)
			require.NoError(t, err, spelling)
			if host == "" {
				host = tt.host
			}
			u, err := b.URL("/tasks", "")
			require.NoError(t, err, spelling)
			assert.Equal(t, host, u.Host, spelling)
			if key == "" {
				key = b.Key()
			}
			assert.Equal(t, key, b.Key(), spelling)
			back, err := url.Parse(u.String())
			require.NoError(t, err, spelling)
			assert.Equal(t, u.Host, back.Host, "the address of a request reads back")
		}
		assert.False(t, keys[key], "two hosts share the budget %s", key)
		keys[key] = true
	}
}

// Without TLS, a password would cross the network: http is for this machine alone, unless the user allows it.
func TestHTTPIsForLoopbackAlone(t *testing.T) {
	t.Parallel()
	for base, isLoopback := range map[string]bool{
		"http://localhost": true, "http://LOCALHOST:8080": true, "http://127.0.0.1:8080": true, "http://127.1.2.3": true, "http://[::1]:8080": true,
		"http://api.example.com": false, "http://10.0.0.1": false, "http://192.0.2.1": false, "http://[fe80::1]": false, "http://0.0.0.0": false,
		"http://localhost.": false, "http://localhost.example.com": false, "http://127.0.0.1.example.com": false,
	} {
		if _, err := address.Parse(base, "acme", false); isLoopback {
			require.NoError(t, err, base)
		} else {
			require.EqualError(t, err, "invalid base URL: http is only allowed for loopback hosts; use https or WithPlainHTTP", base)
		}
		_, err := address.Parse(base, "acme", true)
		require.NoError(t, err, base)
	}
}
