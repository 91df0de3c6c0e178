package wire_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

func TestEnvelopeCodeIsReadWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"code":400}`: 400, `{"code":"400"}`: 400, `{"code":201,"transaction_id":7}`: 201, `{"code":null}`: 0, `{"transaction_id":7}`: 0,
		`{}`: 0, ``: 0, `null`: 0, `[]`: 0, `400`: 0, `<html>`: 0, `{"code":"E17"}`: 0,
		`["code",400]`: 0, `[{"code":400}]`: 0, `x{"code":400}`: 0, `"code"`: 0, `{"c`: 0, `{"code`: 0, `{"code":`: 0,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.EnvelopeCode(slices.Clip([]byte(body))))
		})
	}
}

func TestEnvelopeCodeHearsEveryRefusal(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"code":200,"code":503}`: 503, `{"code":503,"code":200}`: 503,
		"\ufeff" + `{"code":400}`: 400, `{"code":400,"description":"cu`: 400, `{"code":400.5}`: 500,
		`{"code":{"major":4}}`: 0, `{"nested":{"code":400}}`: 0, `{"description":"code"}`: 0, "{\"code\":400,\"d\":\"\xff\"}": 400,
		"{\"d\":\"\xff\",\"code\":400}": 400, `{"d":"ccc","code":400}`: 400, `{"CODE":400}`: 0, `{"d":1,"d":2,"code":400}`: 400,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.EnvelopeCode(slices.Clip([]byte(body))))
		})
	}
}

func TestEnvelopeCodeOfWhatIsNoEnvelope(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"code":400,"id":7}`: 0, `{"id":7,"code":400}`: 0, `{"code":400,"id":null}`: 400, `{"code":400,"ID":7}`: 400, `{"code":400,"other":0}`: 0,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.EnvelopeCode([]byte(body), "id", "other"))
		})
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

func TestHigherCode(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 503, wire.HigherCode(400, jsontext.Value(`503`)))
	assert.Equal(t, 400, wire.HigherCode(400, jsontext.Value(`"200"`)))
	assert.Equal(t, 500, wire.HigherCode(400, jsontext.Value(`0.5`)))
	assert.Equal(t, 400, wire.HigherCode(400, jsontext.Value(`[503]`)))
}

func TestErrorWordsOneByOne(t *testing.T) {
	t.Parallel()
	var w wire.ErrorWords
	assert.Empty(t, w.Text())
	w.Add("error_info", []byte(`{"message":"c"}`))
	assert.Equal(t, "c", w.Text())
	w.Add("message", []byte(`"b"`))
	w.Add("description", []byte(`["a"]`))
	assert.Equal(t, "b", w.Text())
}
