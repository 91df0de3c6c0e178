package webdelivery

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The document says ISO 8601 and UTC, and shows no pattern: all usual ones are read, and one without a zone is UTC.
func TestTimestampsAreReadInUTC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		`null`:                            {},
		`""`:                              {},
		`"2026-11-20T08:30:00Z"`:          time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T08:30:00.250Z"`:      time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
		`"2026-11-20T08:30:00,250Z"`:      time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
		`"2026-11-20T08:30:00.123456789"`: time.Date(2026, 11, 20, 8, 30, 0, 123456789, time.UTC),
		`"2026-11-20T08:30:00+0000"`:      time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T08:30:00.250+0000"`:  time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
		`"2026-11-20T08:30:00+00:00"`:     time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T10:30:00+02:00"`:     time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20T03:00:00.5-0530"`:    time.Date(2026, 11, 20, 8, 30, 0, 500e6, time.UTC),
		`"2026-11-20T08:30:00"`:           time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20 08:30:00"`:           time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20 08:30:00Z"`:          time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		`"2026-11-20"`:                    time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var got timestamp
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			assert.Equal(t, want, got.Time)
		})
	}
	// A time that cannot be read must not become "never".
	for _, text := range []string{`"yesterday"`, `"2026-13-01T00:00:00Z"`, `"2026-11-20T25:00:00Z"`, `"08:30:00"`, `" "`, `1795163400`, `{}`, `true`} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Error(t, json.Unmarshal([]byte(text), new(timestamp)))
		})
	}
}

func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`0`: 0, `5`: 5, `-1`: -1, `"5"`: 5, `"-1"`: -1, `null`: 0, `9007199254740993`: 9007199254740993, `"9007199254740993"`: 9007199254740993,
		`9223372036854775807`: 9223372036854775807, `-9223372036854775808`: -9223372036854775808,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var got looseInt
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			assert.EqualValues(t, want, got)
		})
	}
	for _, text := range []string{
		`1.5`, `1e400`, `"1e3"`, `9223372036854775808`, `-9223372036854775809`, `"9223372036854775808"`, `"five"`, `" 5"`, `"0x10"`, `"1_000"`,
		`true`, `{}`, `[]`, `[5]`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Error(t, json.Unmarshal([]byte(text), new(looseInt)))
		})
	}
}

// Open point 31: an object with code/description, with message, or with error_info, gives the text; anything else gives
// the status text.
func TestErrorBodiesGiveTheirText(t *testing.T) {
	t.Parallel()
	const fallback = "Bad Request"
	for body, want := range map[string]string{
		`{"code":400,"description":"words"}`:   "words",
		`{"code":"400","description":"words"}`: "words",
		// A code that is no number is no reason to hide what the service says.
		`{"code":"INVALID_DOMAIN","description":"words"}`:                              "words",
		`{"code":400.5,"message":"words"}`:                                             "words",
		`{"code":null,"description":"words"}`:                                          "words",
		`{"description":"words","code":{"major":4}}`:                                   "words",
		`{"description":"words"}`:                                                      "words",
		`{"message":"words"}`:                                                          "words",
		`{"code":400,"description":"","message":"words"}`:                              "words",
		`{"code":400,"description":null,"message":"words"}`:                            "words",
		`{"error_info":{"message":"words","type":"T","details":[{"message":"more"}]}}`: "words",
		`{"error_info":null,"message":"words","new":{}}`:                               "words",
		`{"code":400,"description":"words","purge_response":null}`:                     "words",
		`{"code":400}`:                          fallback,
		`{"error_info":{}}`:                     fallback,
		`{"error":"words"}`:                     fallback,
		`{}`:                                    fallback,
		`null`:                                  fallback,
		`[]`:                                    fallback,
		`"words"`:                               fallback,
		`words`:                                 fallback,
		`{"description":"wor`:                   fallback,
		`<html><h1>400 Bad Request</h1></html>`: fallback,
		``:                                      fallback,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, describe(http.StatusBadRequest, http.Header{}, []byte(body)))
		})
	}
	assert.Empty(t, describe(599, http.Header{}, nil), "a status that has no text")
}

func TestEnvelopeCodeIsReadWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"code":400}`: 400, `{"code":"400"}`: 400, `{"code":201,"transaction_id":7}`: 201, `{"code":null}`: 0, `{"transaction_id":7}`: 0,
		`{}`: 0, ``: 0, `null`: 0, `[]`: 0, `400`: 0, `<html>`: 0, `{"code":"E17"}`: 0,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, envelopeCode([]byte(body), false))
		})
	}
}

func TestDecodingErrorsNameTheField(t *testing.T) {
	t.Parallel()
	assert.Empty(t, decodeReason(nil))
	for body, field := range map[string]string{
		`{"id":5}`: "id", `{"id":"t","progress":"half"}`: "progress", `{"user":{"id":5}}`: "user.id", `{"error_info":[]}`: "error_info",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			err := json.Unmarshal([]byte(body), new(Task))
			require.Error(t, err)
			got, _, _ := strings.Cut(decodeReason(err), ":")
			assert.Equal(t, field, got, "in the service's own names")
		})
	}
}

func TestRequestBodiesAreNotEscapedForHTML(t *testing.T) {
	t.Parallel()
	body, err := marshalJSON(map[string]string{"a": `<&>"\ü`})
	require.NoError(t, err)
	assert.Equal(t, `{"a":"<&>\"\\ü"}`, string(body))

	_, err = marshalJSON(func() {})
	assert.ErrorIs(t, err, ErrInvalid)
}
