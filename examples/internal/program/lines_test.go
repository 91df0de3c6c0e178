package program_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// Blank lines, comments and the space around a line are skipped, with all kinds of line ends. A byte order mark is one
// only at the beginning.
func TestLines(t *testing.T) {
	t.Parallel()
	const mark = "\ufeff"
	for text, want := range map[string][]string{
		"# of today\r\n\r\n  a  \n\t#b\nc d #e\n \nf": {"a", "c d #e", "f"},
		mark + "a\n" + mark + "b":                     {"a", mark + "b"},
		mark + "# of today\na":                        {"a"},
	} {
		var got []string
		for line, err := range program.Lines(t.Context(), strings.NewReader(text)) {
			require.NoError(t, err)
			got = append(got, line)
		}
		assert.Equal(t, want, got)
	}
}
