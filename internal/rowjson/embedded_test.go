package rowjson_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

type (
	left   struct{ Name, Same, Other string } // without tags
	client struct {
		Name string `json:"a"`
	}
	server struct {
		Name string `json:"b"`
	}
	both struct {
		client
		server
	}
	numbered struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	Word string
	Loop struct {
		*Loop
		*both
	}
)

// Fields of embedded structs get the values that encoding/json gives them, whatever their Go names.
func TestFieldsOfEmbeddedStructs(t *testing.T) {
	t.Parallel()
	fields := rowjson.Fields{Tag: "json", Value: func(any) *rowjson.Value { return nil }}
	for name, tt := range map[string]struct {
		into    any
		columns string
	}{
		"one Go name, two tags": {new(struct {
			client
			server
		}), "a b"},
		"hidden by the name of an outer field": {new(struct {
			client
			Name string `json:"c"`
		}), "a c"},
		"hidden by an outer field without a tag": {new(struct {
			client
			Name string `json:"-"`
		}), "a"},
		"three depths": {new(struct {
			both
			Name string `json:"c"`
		}), "a b c"},
		"an outer field of another type": {new(struct {
			numbered
			A string `json:"a"`
		}), "b a"},
		"an outer field of another name": {new(struct {
			Z string `json:"a"`
			both
		}), "a b"},
		"a deeper one first": {new(struct {
			both
			numbered
			A string `json:"a"`
		}), "b a"},
		"a text": {new(struct {
			client
			Word `json:"b"`
		}), "a b"},
		"a struct that is left alone": {new(struct {
			client
			numbered `json:"-"`
		}), "a"},
		"not embedded": {new(struct {
			Client client `json:"-"`
			A      string `json:"a"`
			left   `json:"-"`
		}), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, strings.Fields(tt.columns), fields.Names(reflect.TypeOf(tt.into).Elem(), ""))
			target, err := fields.Target(tt.into)
			require.NoError(t, err)
			r := newReader(`{"columns":[{"name":"a"},{"name":"b"},{"name":"c"}],"rows":[["1","2","3"],["4","5","6"],["7","8","9"]],"total_results":3}`, 1000)
			for i := range 3 {
				require.True(t, r.Next())
				require.Nil(t, target.Store(r.Row()))
				want := reflect.New(reflect.TypeOf(tt.into).Elem()).Interface()
				require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"a":"%d","b":"%d","c":"%d"}`, 3*i+1, 3*i+2, 3*i+3), want))
				assert.Equal(t, want, tt.into)
			}
		})
	}
	for _, into := range []any{new(struct{ *both }), new(Loop)} {
		_, err := fields.Target(into)
		require.ErrorContains(t, err, "cannot set field Name")
	}
	_, err := fields.Target(new(struct{ *left }))
	require.ErrorContains(t, err, "not a struct with json tags")
}

// An embedded struct with a tag is one value, and its own fields are left alone.
func TestAnEmbeddedStructThatIsAValue(t *testing.T) {
	t.Parallel()
	var got struct {
		ValueWithFields `column:"b"`

		A string `column:"a"`
	}
	target, err := fields.Target(&got)
	require.NoError(t, err)
	r := newReader(`{"columns":[{"name":"a"},{"name":"b"}],"rows":[["x",1],["x",2]],"total_results":2}`, 1000)
	for _, want := range []string{"1", "2"} {
		require.True(t, r.Next())
		require.Nil(t, target.Store(r.Row()))
		assert.Equal(t, ValueWithFields{text: want}, got.ValueWithFields)
		assert.Equal(t, "x", got.A)
	}
}

type ValueWithFields struct {
	A    string `column:"a"`
	text string
}

func (v *ValueWithFields) UnmarshalText(text []byte) error {
	v.text = string(text)
	return nil
}
