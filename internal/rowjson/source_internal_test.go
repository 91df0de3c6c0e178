package rowjson

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows that are all there and end too early are cut: nothing more is to come.
func TestRowsThatEndTooEarlyAreCut(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "[", "[1", `["x`, "[1,"} {
		source := rowSource{text: []byte(text), limit: Limit{Bytes: 100}}
		_, err := source.peek()
		if err == nil {
			_, err = source.row()
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, text)
	}
}
