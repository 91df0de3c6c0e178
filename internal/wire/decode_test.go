package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// The code of an envelope is the highest of several, also before a syntax error, and 500 if it is no whole number. An object
// with a member that is named and not null is no envelope.
func TestEnvelopeCode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"code":400}`: 400, `{"code":"400"}`: 400, `{"code":201,"other_id":7}`: 201, `{"code":null}`: 0, `{}`: 0, ``: 0, `null`: 0,
		`<html>`: 0, `{"code":"E17"}`: 0, `{"code":400.5}`: 500, `{"code":[503]}`: 0, `{"code":{"major":4}}`: 0, `{"CODE":400}`: 0,
		`{"nested":{"code":400}}`: 0, `[{"code":400}]`: 0, `x{"code":400}`: 0, `{"description":"code"}`: 0, `{"code":`: 0,
		`{"code":200,"code":503}`: 503, `{"code":503,"code":200}`: 503, `{"d":1,"d":2,"code":400}`: 400,
		"\ufeff" + `{"code":400}`: 400, `{"code":400,"description":"cu`: 400, "{\"d\":\"\xff\",\"code\":400}": 400,

		`{"code":400,"id":7}`: 0, `{"id":7,"code":400}`: 0, `{"code":400,"other":0}`: 0, `{"code":400,"id":null}`: 400, `{"code":400,"ID":7}`: 400,
	} {
		assert.Equal(t, want, wire.EnvelopeCode(slices.Clip([]byte(body)), "id", "other"), body)
	}
}

// A name in another letter case is another name, and two members with one name are an error.
func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	var got struct {
		ID string `json:"id"`
	}
	require.NoError(t, wire.Decode([]byte(`{"ID":"a","id":"b","\u0049d":"c","iD":1}`), &got))
	assert.Equal(t, "b", got.ID)
	require.Error(t, wire.Decode([]byte(`{"id":"a","id":"b"}`), &got))
}

// Open point 31: an object with code/description, with message, or with error_info, gives the text; anything else gives
// nothing. A code that is not a number is no reason to hide what the service says.
func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, bodies := range map[string][]string{
		"words": {
			`{"code":"INVALID_DOMAIN","description":"words","purge_response":null}`, `{"description":"words","code":{"major":4}}`,
			`{"message":"words","description":""}`, `{"description":null,"message":"words","new":{}}`,
			`{"error_info":{"message":"words","type":"T","details":[{"message":"more"}]}}`, `{"error_info":{"message":"words","details":7}}`,
			`{"error_info":null,"message":"words"}`, `{"error_info":{"message":"c"},"message":"b","description":"words"}`,
			`{"message":"words","description":["a"],"error_info":{"message":"c"}}`, `{"description":null,"message":5,"error_info":{"message":"words"}}`,
		},
		"": {
			`{"Description":"words"}`, `{"code":400}`, `{"error_info":{}}`, `{"error":"words"}`, `null`, `[]`, `"words"`, `words`,
			`{"description":"words"`, `{"description":"words","x":"wor`, `<html><h1>400 Bad Request</h1></html>`, ``,
		},
	} {
		for _, body := range bodies {
			assert.Equal(t, want, wire.ErrorText([]byte(body)), body)
		}
	}
}
