package address_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Requests go to {base_url}/<customer_name>/v1. The path of the base URL stays, and the customer is one escaped
// element.
func TestWhereRequestsGo(t *testing.T) {
	t.Parallel()
	tests := []struct{ baseURL, customer, want string }{
		{"https://api.example.com", "acme", "https://api.example.com/acme/v1/tasks/a%2Fb?page=2"},
		{"HTTPS://API.example.com:443/", "acme", "https://api.example.com/acme/v1/tasks/a%2Fb?page=2"},
		{"https://api.example.com:8443/root//", "b?c d", "https://api.example.com:8443/root/b%3Fc%20d/v1/tasks/a%2Fb?page=2"},
		{"https://api.example.com", "\u0915\u094d\u200d\u0937 \u2764\ufe0f", "https://api.example.com/%E0%A4%95%E0%A5%8D%E2%80%8D%E0%A4%B7%20%E2%9D%A4%EF%B8%8F/v1/tasks/a%2Fb?page=2"},
		{"https://api.example.com/%72oot/x%2fy", "ü", "https://api.example.com/root/x%2Fy/%C3%BC/v1/tasks/a%2Fb?page=2"},
	}
	for _, tt := range tests {
		b, err := address.Parse(tt.baseURL, tt.customer, false)
		require.NoError(t, err, tt.baseURL)
		u, err := b.URL("/tasks/a%2Fb", "page=2")
		require.NoError(t, err, tt.baseURL)
		assert.Equal(t, tt.want, u.String())
		assert.Equal(t, u.EscapedPath(), b.Path("/tasks/a%2Fb"), "what errors show is what is sent")
		_, err = b.URL("/tasks/%zz", "")
		require.Error(t, err, tt.baseURL)
	}
}

// http is only allowed for loopback, unless the user allows it everywhere.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	for host, loopback := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "localhost.": false, "127.0.0.1": true, "127.1.2.3:80": true, "[::1]:8080": true,
		"api.example.com": false, "localhost.example.com": false, "192.0.2.1": false, "[2001:db8::1]": false, "0.0.0.0": false,
	} {
		_, err := address.Parse("http://"+host, "acme", false)
		if loopback {
			require.NoError(t, err, host)
		} else {
			require.EqualError(t, err, "invalid base URL: http is only allowed for loopback hosts; use https or WithPlainHTTP", host)
		}
		_, err = address.Parse("http://"+host, "acme", true)
		require.NoError(t, err, host)
		_, err = address.Parse("ftp://"+host, "acme", true)
		require.EqualError(t, err, "invalid base URL: the scheme is not https", host)
	}
}

// Each mistake in a base URL has its own reason. The reason shows no part of the base URL: if it is misspelled, any
// part may hold the password.
func TestAnErrorRepeatsNothingOfTheBaseURL(t *testing.T) {
	t.Parallel()
	const (
		missing = "needs a scheme and a host; write https://, as in https://api.example.com"
		path    = "the path has an empty element, a dot element, a backslash, a control character or a bad escape; remove it. " +
			"The client appends /<customer>/v1 itself, for example to https://api.example.com"
	)
	for form, reason := range map[string]string{
		"https://alice:SECRET":                    "", // the reason depends on whether the secret is a number
		"https://h.example.com/%zzSECRET":         "not a URL; write https://, as in https://api.example.com",
		"":                                        missing,
		"SECRET":                                  missing,
		"https://:443/SECRET":                     missing,
		"https:///SECRET":                         missing,
		"https:alice:SECRET@h":                    missing,
		"https://alice:SECRET@h.example.com":      "must not contain user information",
		"https://h.example.com?SECRET":            "must not contain a query",
		"https://h.example.com?":                  "must not contain a query",
		"https://h.example.com#SECRET":            "must not contain a fragment",
		"https://h.example.com#":                  "must not contain a fragment",
		"https://h.example.com:0":                 "the port is not between 1 and 65535",
		"https://h_SECRET!/":                      "the host is not a valid host name",
		"https://alice%3ASECRET%40h":              "not a URL; write https://, as in https://api.example.com",
		"xSECRET://h.example.com":                 "the scheme is not https",
		`https://h.example.com/\alice:SECRET@h`:   path,
		"https://h.example.com/a/../SECRET":       path,
		"https://h.example.com/..%2fSECRET":       path,
		"https://h.example.com//SECRET":           path,
		"https://h.example.com/SECRET/%01":        path,
		"https://h.example.com/SECRET/%2e":        path,
		"https://h.example.com/SECRET//customers": path,
		"https://h.example.com/acme/.":            path,
		"https://h.example.com/acme/x/..":         path,
	} {
		for _, secret := range []string{"hunter22", "99999"} {
			_, err := address.Parse(strings.ReplaceAll(form, "SECRET", secret), "acme", false)
			var invalid *address.Error
			require.ErrorAs(t, err, &invalid, form)
			assert.Equal(t, "base URL", invalid.Field, form)
			assert.NotContains(t, err.Error(), secret, form)
			if reason != "" {
				assert.Equal(t, reason, invalid.Reason, form)
			}
		}
	}
}

// A customer is one visible name. The error says what to write.
func TestCustomersThatAreNone(t *testing.T) {
	t.Parallel()
	for customer, reason := range map[string]string{
		"": "is empty", "a/..": "contains a slash", `..\a`: "contains a slash", "https://api.example.com": "contains a slash",
		"\x20acme": "begins or ends with a space", "acme\u00a0": "begins or ends with a space", "a\n": "begins or ends with a space",
		"a\nb": "contains the invisible character U+000A at byte 1", "\x7f": "contains the invisible character U+007F at byte 0",
		"a\u0085b": "contains the invisible character U+0085", "a\u00a0b": "contains the invisible character U+00A0", "a\u2028b": "contains the invisible character U+2028",
		"acme\u200b": "contains the invisible character U+200B at byte 4", "\u202eacme": "contains the invisible character U+202E at byte 0",
		"a\u00ad": "contains the invisible character U+00AD", "\ufeffacme": "contains the invisible character U+FEFF",
		"a\U000e0041": "contains the invisible character U+E0041", "\xff": "is not UTF-8",
	} {
		_, err := address.Parse("https://api.example.com", customer, false)
		var invalid *address.Error
		require.ErrorAs(t, err, &invalid, "%q", customer)
		assert.Equal(t, "customer", invalid.Field)
		assert.True(t, strings.HasPrefix(invalid.Reason, reason), "%q: %s", customer, invalid.Reason)
		assert.Contains(t, invalid.Reason, "; write the name of the customer alone, such as acme", "%q", customer)
	}
	for _, customer := range []string{".", ".."} {
		_, err := address.Parse("https://api.example.com", customer, false)
		require.EqualError(t, err, `invalid customer: "`+customer+`" would change the path`)
	}
	for _, customer := range []string{"acme", "ac me", "Zoë", "क\u200dष", "می\u200cخواهم", "👨\u200d👩", "日本"} { // some scripts need joiners
		_, err := address.Parse("https://api.example.com", customer, false)
		require.NoError(t, err, "%q", customer)
	}
}

// A base URL that reaches to the customer or to v1 would have them twice, in any letter case and with any escapes.
func TestABaseURLThatReachesTooFar(t *testing.T) {
	t.Parallel()
	const host = "https://api.example.com"
	const rather = ", but the client appends /<customer>/v1 itself; leave that out, as in https://api.example.com"
	for customer, paths := range map[string]struct{ version, name, fine []string }{
		"ac me": {
			version: []string{
				"/v1", "/v1/", "/%761", "/ac%20me/v1", "/root/v1", "/V1", "/%56%31", "/x%2Fv1", "/x%2fV1", "/v1%2F",
			},
			name: []string{"/ac%20me", "/root/ac%20me/", "/AC%20ME", "/x%2Fac%20me"},
			fine: []string{
				"", "/", "/v1/root", "/xv1", "/v2", "/ac%20me/root", "/ac", "/acme", "/me", "/ac%20%20me", "/gateway/api/v1x", "/v1.0", "/v1.1", "/v%201", "/.v1",
				"/v1-beta", "/v1%2Froot", "/v11", "/v", "/1",
			},
		},
		"acme": {
			version: []string{"/acme%2Fv1", "/acme%2fV1"},
			name:    []string{"/acme", "/ACME", "/x%2Facme", "/%41cme"},
			fine:    []string{"/acme2", "/xacme", "/acme%2Fx", "/acme.com", "/ac%20me"},
		},
		"ACME": {name: []string{"/acme", "/ACME"}, fine: []string{"/acm"}},
		"Zoë":  {name: []string{"/Zo%C3%AB", "/zo%C3%8B"}, fine: []string{"/zoe"}},
		"a%2f": {name: []string{"/a%252f", "/A%252F"}, fine: []string{"/a%2Fx", "/a"}},
		"...":  {fine: []string{"", "/", "/x"}},
	} {
		for reason, list := range map[string][]string{"the path ends in /v1": paths.version, "the path ends in the name of the customer": paths.name} {
			for _, path := range list {
				_, err := address.Parse(host+path, customer, false)
				assert.EqualError(t, err, "invalid base URL: "+reason+rather, "%s and %s", path, customer)
			}
		}
		for _, path := range paths.fine {
			_, err := address.Parse(host+path, customer, false)
			assert.NoError(t, err, "%s and %s", path, customer)
		}
	}
}

// Errors name the host, with a port that is not that of the scheme.
func TestHost(t *testing.T) {
	t.Parallel()
	for baseURL, want := range map[string]string{
		"https://API.example.com:443/root": "api.example.com", "https://api.example.com:8443": "api.example.com:8443", "http://[::1]:8080": "[::1]:8080",
	} {
		b, err := address.Parse(baseURL, "acme", false)
		require.NoError(t, err)
		assert.Equal(t, want, b.Host())
	}
}

// The base as a URL is one that can be parsed again, also with the zone of an IPv6 address.
func TestString(t *testing.T) {
	t.Parallel()
	for baseURL, want := range map[string]string{
		"https://API.example.com:443/root/":  "https://api.example.com/root/acme/v1",
		"http://[FE80::1%25eth0]:8080":       "http://[fe80::1%25eth0]:8080/acme/v1",
		"https://[2001:db8::1]/a%2fb":        "https://[2001:db8::1]/a%2Fb/acme/v1",
		"http://[::1%25lo]/with%20space/and": "http://[::1%25lo]/with%20space/and/acme/v1",
	} {
		b, err := address.Parse(baseURL, "acme", true)
		require.NoError(t, err)
		assert.Equal(t, want, b.String())
		again, err := url.Parse(b.String())
		require.NoError(t, err)
		assert.Equal(t, b.Host(), again.Host)
	}
}
