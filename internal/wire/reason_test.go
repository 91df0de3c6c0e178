package wire_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// A Reason names the field as the service does, also in a type that decodes itself.
func TestReasonsOfDecodingErrors(t *testing.T) {
	t.Parallel()
	type plain struct {
		Size int             `json:"size"`
		In   struct{ N int } `json:"in"`
	}
	type itself struct{ *plain }
	for body, want := range map[string]string{
		`{"size":"a"}`:                    "size: string does not fit int",
		`{"in":{"N":"a"}}`:                "in.N: string does not fit int",
		`{"size":3000000000000000000000}`: "size: number 3000000000000000000000 does not fit int",
		`[]`:                              ": array does not fit wire_test.itself",
		`{`:                               "unexpected end of JSON input",
	} {
		err := json.Unmarshal([]byte(body), &itself{&plain{}})
		require.Error(t, err)
		assert.Equal(t, want, wire.Reason(err), body)
	}
	assert.Equal(t, "other", wire.Reason(errors.New("other")))
	assert.Empty(t, wire.Reason(nil))
}
