package address_test

import (
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
		"localhost": true, "LOCALHOST:8080": true, "localhost.": true, "127.0.0.1": true, "127.1.2.3:80": true, "[::1]:8080": true,
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
		missing = "needs a scheme and a host, as in https://api.example.com"
		path    = "the path has an empty element, a dot element, a backslash, a control character or a bad escape"
	)
	for form, reason := range map[string]string{
		"https://alice:SECRET":                    "", // the reason depends on whether the secret is a number
		"https://h.example.com/%zzSECRET":         "not a URL",
		"SECRET":                                  missing,
		"https:///SECRET":                         missing,
		"https:alice:SECRET@h":                    missing,
		"https://alice:SECRET@h.example.com":      "must not contain user information",
		"https://h.example.com?SECRET":            "must not contain a query",
		"https://h.example.com?":                  "must not contain a query",
		"https://h.example.com#SECRET":            "must not contain a fragment",
		"https://h.example.com#":                  "must not contain a fragment",
		"https://h.example.com:0":                 "the port is not between 1 and 65535",
		"https://h_SECRET!/":                      "the host is not a valid host name",
		"https://alice%3ASECRET%40h":              "not a URL",
		"xSECRET://h.example.com":                 "the scheme is not https",
		`https://h.example.com/\alice:SECRET@h`:   path,
		"https://h.example.com/a/../SECRET":       path,
		"https://h.example.com/..%2fSECRET":       path,
		"https://h.example.com//SECRET":           path,
		"https://h.example.com/SECRET/%01":        path,
		"https://h.example.com/SECRET/%2e":        path,
		"https://h.example.com/SECRET//customers": path,
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

func TestCustomersThatAreNone(t *testing.T) {
	t.Parallel()
	for _, customer := range []string{
		"", ".", "..", "a/..", `..\a`, "a\n", "\x7f", "a/b", "/acme", "acme/", "acme/v1", "https://api.example.com", `a\b`, " acme", "acme\u00a0", "a\u0085b", "\xff",
	} {
		_, err := address.Parse("https://api.example.com", customer, false)
		var invalid *address.Error
		require.ErrorAs(t, err, &invalid, "%q", customer)
		assert.Equal(t, "customer", invalid.Field)
	}
}

// A base URL that reaches to the customer or to v1 would have them twice. What only resembles them is a path like any other.
func TestABaseURLThatReachesTooFar(t *testing.T) {
	t.Parallel()
	const host, customer = "https://api.example.com", "ac me"
	const rather = ", but the client appends /<customer>/v1 itself; leave that out, as in https://api.example.com"
	for path, reason := range map[string]string{
		"/v1": "the path ends in /v1" + rather, "/v1/": "the path ends in /v1" + rather, "/%761": "the path ends in /v1" + rather,
		"/ac%20me/v1": "the path ends in /v1" + rather, "/root/v1": "the path ends in /v1" + rather,
		"/ac%20me": "the path ends in the name of the customer" + rather, "/root/ac%20me/": "the path ends in the name of the customer" + rather,
		"": "", "/": "", "/v1/root": "", "/xv1": "", "/v2": "", "/V1": "", "/ac%20me/root": "", "/ac": "",
	} {
		_, err := address.Parse(host+path, customer, false)
		if reason == "" {
			require.NoError(t, err, path)
			continue
		}
		require.EqualError(t, err, "invalid base URL: "+reason, path)
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
