package address_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

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
		"https://SECRETü.example.com/":            "the host is not a valid host name; write other letters than a to z in punycode (xn--...)",
		"https://h_SECRET!/":                      "the host is not a valid host name; write other letters than a to z in punycode (xn--...)",
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

// A base URL that reaches to the customer or to v1 would have them twice, in any letter case and with any escapes.
func TestABaseURLThatReachesTooFar(t *testing.T) {
	t.Parallel()
	const host = "https://api.example.com"
	const rather = ", but the client appends /<customer>/v1 itself; leave that out, as in https://api.example.com"
	for customer, paths := range map[string]struct{ version, name, fine []string }{
		"ac me": {
			version: []string{"/v1", "/v1/", "/%761", "/ac%20me/v1", "/root/v1", "/V1", "/%56%31", "/x%2Fv1", "/x%2fV1", "/v1%2F"},
			name:    []string{"/ac%20me", "/root/ac%20me/", "/AC%20ME", "/x%2Fac%20me"},
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
