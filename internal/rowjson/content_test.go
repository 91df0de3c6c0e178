package rowjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The content of a row, by which an export knows it again, is its JSON without one value, white space and needless
// escapes. Rows that differ have different contents.
func TestContentOfRows(t *testing.T) {
	t.Parallel()
	known := map[string]string{}
	for _, tt := range [][2]string{
		{`["a/b",1]`, `["a/b",]`},
		{` [ "\u0061\/b" , 2 ] `, `["a/b",]`},
		{`["a\"\u00e9\u0001",1]`, `["a\"é\u0001",]`},
		{`[-12.5,1]`, `[-12.5,]`},
		{`["",1]`, `["",]`},
		{`["null",1]`, `["null",]`},
		{`[null,1]`, `[null,]`},
		{`[1,1]`, `[1,]`},
		{`["1",1]`, `["1",]`},
		{`["/\ufffd",1]`},
		{`["/\ud800",1]`},
		{"[\"/\xff\",1]"},
		{"[\"/\xfe\",1]"}, // each has its own
	} {
		row, want := tt[0], tt[1]
		r := readerOf(strings.NewReader(columnsOf(2) + row + `],"total_results":1}`))
		require.True(t, r.Next(), r.Err())
		content, value := r.Row().Content([]byte("before"), 1, nil)
		assert.Equal(t, r.Row().At(1), value)
		if want != "" {
			assert.Equal(t, "before"+want, string(content), row)
			continue
		}
		assert.NotContains(t, known, string(content), row)
		known[string(content)] = row
	}
	r := readerOf(strings.NewReader(columnsOf(2) + `["a",1]],"total_results":1}`))
	require.True(t, r.Next())
	content, _ := r.Row().Content(nil, 1, []bool{true, false})
	assert.Equal(t, `[]`, string(content))
}
