package wire_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// record has a member of each type that a plain object may have.
type record struct {
	Text  string
	Count int
	Ready bool
	At    time.Time
	Inner struct{ ID string }
}

func (r *record) readPlain(text string) bool {
	return wire.ReadPlain([]byte(text),
		wire.Into("text", &r.Text), wire.Into("count", &r.Count), wire.Into("ready", &r.Ready), wire.Into("at", &r.At),
		wire.IntoObject("inner", wire.Into("id", &r.Inner.ID)), wire.Into("failure", nil),
	)
}

// decode reads the same members with encoding/json.
func (r *record) decode(text []byte) error {
	var w struct {
		Text  *string        `json:"text"`
		Count *int           `json:"count"`
		Ready *bool          `json:"ready"`
		At    wire.Timestamp `json:"at"`
		Inner struct {
			ID *string `json:"id"`
		} `json:"inner"`
	}
	w.Text, w.Count, w.Ready, w.Inner.ID = &r.Text, &r.Count, &r.Ready, &r.Inner.ID
	err := wire.Decode(text, &w)
	r.At = w.At.Time
	return err
}

func TestPlainObjects(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC)
	for text, want := range map[string]record{
		`{}`:                       {},
		" \t\r\n{ } \n":            {},
		`{"text":"a","count":-17}`: {Text: "a", Count: -17},
		`{ "text" : "grün" , "ready" : true , "count" : 0 }`:     {Text: "grün", Ready: true},
		`{"at":"2026-11-20T08:30:00.250Z","ready":false}`:        {At: at},
		`{"at":"2026-11-20T08:30:00.250"}`:                       {At: at},
		`{"inner":{"id":"i","more":1},"text":"b"}`:               {Text: "b", Inner: struct{ ID string }{"i"}},
		`{"text":null,"count":null,"ready":null,"at":null}`:      {},
		`{"inner":null,"inner":{}}`:                              {},
		`{"new":"x","other":1,"third":true,"no":null,"text":""}`: {},
		`{"Text":"capital","TEXT":1,"größe":"x"}`:                {},
		`{"count":1,"count":2}`:                                  {Count: 2},
	} {
		var got record
		require.True(t, got.readPlain(text), text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		``, `{`, `null`, `[]`, `"text"`, `{}}`, `{},`, `{} x`, "\ufeff{}", `{"text"}`, `{"text":}`, `{"text":"a",}`, `{"text":"a" "count":1}`, `{,}`,
		`{text:"a"}`, `{"text":"a`, `{"text":"a\u0062"}`, `{"t\u0065xt":"a"}`, "{\"text\":\"a\tb\"}", "{\"text\":\"\xff\"}", "{\"\xff\":1}",
		`{"text":1}`, `{"text":true}`, `{"text":{}}`, `{"count":"1"}`, `{"count":1.0}`, `{"count":1e3}`, `{"count":01}`, `{"count":-01}`, `{"count":-}`,
		`{"count":}`, `{"count":12345678901234567890}`, `{"ready":"true"}`, `{"ready":1}`, `{"ready":truex}`, `{"at":""}`, `{"at":"today"}`, `{"at":"2026-11-20T08:30:00ZZ"}`,
		`{"at":"2026-11-20T08:30:00+01:00"}`, `{"at":17}`, `{"inner":[]}`, `{"inner":"i"}`, `{"inner":{"id":1}}`, `{"inner":{"id":"i"}`,
		`{"failure":null}`, `{"failure":{}}`, `{"failure":"x"}`, `{"new":{}}`, `{"new":[]}`, `{"new":1.5}`, `{"new":nul}`, `{"new":00}`, `{"new":}`,
	} {
		assert.False(t, new(record).readPlain(text), text)
	}
}

// What ReadPlain reads is what Decode reads.
func FuzzPlainObjects(f *testing.F) {
	for _, seed := range []string{
		`{"text":"a","count":-17,"ready":true,"at":"2026-11-20T08:30:00.250Z","inner":{"id":"i"},"new":null,"failure":1}`,
		`{"text":"grün","count":-0,"TEXT":"b","at":null,"inner":{},"inner":{"id":"j"},"count":null}`, `{"a":"\ud800"}`, `{"ſ":1,"count":00}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var plain, want record
		if plain.readPlain(string(text)) {
			require.NoError(t, want.decode(text), "%q", text)
			require.Equal(t, want, plain, "%q", text)
		}
	})
}
