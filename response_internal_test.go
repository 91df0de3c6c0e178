package webdelivery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

func TestDecodingErrorsNameTheField(t *testing.T) {
	t.Parallel()
	assert.Empty(t, wire.Reason(nil))
	for body, field := range map[string]string{
		`{"id":5}`: "id", `{"user":{"id":5}}`: "user.id", `{"error_info":[]}`: "error_info",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			err := wire.Decode([]byte(body), new(Task))
			require.Error(t, err)
			got, _, _ := strings.Cut(wire.Reason(err), ":")
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
