package webdelivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// The fuzz targets of responses give a client bytes as if the service had sent them. They compare the client's result
// with what encoding/json reads into a map.

// unlimited is a Limiter that never waits.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// answered is a client without a network: it gives each request to the function, and does not retry.
func answered(t testing.TB, answer func(*http.Request) *http.Response) *webdelivery.Client {
	t.Helper()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r), nil })
	client, err := webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password),
		webdelivery.WithHTTPClient(&http.Client{Transport: transport}),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}),
		webdelivery.WithPurgeLimiter(unlimited{}))
	require.NoError(t, err)
	return client
}

// response is a response with a body of JSON, if it has one.
func response(status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// always is a client that gets a 200 with the same body for every request.
func always(t testing.TB, body []byte) *webdelivery.Client {
	t.Helper()
	return answered(t, func(*http.Request) *http.Response { return response(http.StatusOK, body) })
}

// plainly reads JSON into maps, slices and json.Number. It returns false if an object has a name twice, in any letter
// case: readers disagree about which of the two counts.
func plainly(body []byte) (value any, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if onlyOnce(dec) != nil {
		return nil, false
	}
	plain := json.NewDecoder(bytes.NewReader(body))
	plain.UseNumber()
	return value, plain.Decode(&value) == nil
}

// onlyOnce reads a value and returns an error if a name comes twice.
func onlyOnce(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	var end jsontext.Kind
	switch token.Kind() {
	case '{':
		end = '}'
	case '[':
		end = ']'
	default:
		return nil
	}
	seen := map[string]bool{}
	for dec.PeekKind() != end {
		if end == '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return err
			}
			folded := strings.ToLower(strings.ToUpper(name.String()))
			if seen[folded] {
				return jsontext.ErrDuplicateName
			}
			seen[folded] = true
		}
		if err := onlyOnce(dec); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

// member returns a member of an object; nil if it is null or missing.
func member(object any, name string) any {
	members, _ := object.(map[string]any)
	return members[name]
}

// textOf returns a member that is a text, or "".
func textOf(object any, name string) string {
	text, _ := member(object, name).(string)
	return text
}
