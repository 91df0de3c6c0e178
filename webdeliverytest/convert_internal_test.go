package webdeliverytest

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// The compiler checks structs that a conversion between types covers. This test covers those with fields of SDK types:
// each field keeps its name and value.
func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	task := TaskSpec{
		ID: "a", Operation: "b", Status: "c", Duration: 1, Error: &TaskError{Message: "d"},
		User: webdelivery.Reference{ID: "e"}, Target: webdelivery.Reference{ID: "f"}, ForeignURI: "g",
	}
	list := NetworkListSpec{
		ID: "a", Type: "b", Name: "c", Description: "d", NoDescription: true, Deprecated: true, Entries: []string{"e"},
	}
	rule := FaultRule{
		Method: "a", Path: "b", Skip: 1, Count: 2, Probability: 0.5, Seed: 3, Delay: time.Second, Status: 500,
		Header: http.Header{"A": nil, "B": {"b"}}, Body: "c", Execute: true, Cut: CutBody, CutAfter: 4, Stall: time.Minute,
		Dribble: time.Hour, Handler: func(http.ResponseWriter, *http.Request) {},
	}
	var dialect Dialect
	for i, value := 0, reflect.ValueOf(&dialect).Elem(); i < value.NumField(); i++ {
		value.Field(i).SetString(value.Type().Field(i).Name)
	}
	var set settings
	require.NoError(t, WithDialect(dialect)(&set))
	for _, pair := range [][2]any{{task, task.spec()}, {list, list.spec()}, {rule, rule.fault()}, {dialect, set.config.Dialect}} {
		public, internal := reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1])
		if _, some := pair[0].(Dialect); !some { // of a dialect, the public type has a part of the fields
			require.Equal(t, internal.NumField(), public.NumField())
		}
		for i := range public.NumField() {
			field, _ := internal.Type().FieldByName(public.Type().Field(i).Name)
			from, to := public.Field(i), internal.FieldByName(field.Name)
			require.True(t, to.IsValid(), "%s is missing", public.Type().Field(i).Name)
			require.False(t, from.IsZero(), "%s is not tried", field.Name)
			if field.Type.Kind() == reflect.Func {
				assert.Equal(t, from.Pointer(), to.Pointer())
				continue
			}
			require.True(t, from.CanConvert(field.Type), "%s", field.Name)
			assert.Equal(t, from.Convert(field.Type).Interface(), to.Interface(), "%s", field.Name)
		}
	}
}
