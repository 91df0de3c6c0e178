package rowjson

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Almost every token comes without an error or ends the text, and costs no allocation.
func TestTokensWithoutAnErrorCostNothing(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	for _, err := range []error{nil, io.EOF} {
		assert.Zero(t, testing.AllocsPerRun(10, func() {
			if withoutPointer(err) != err { //nolint:errorlint // the same one
				panic(err)
			}
		}))
	}
}

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
