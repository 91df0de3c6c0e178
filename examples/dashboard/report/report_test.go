package report_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/dashboard/report"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// A chart has a line for each of the eight largest groups, and one for all others. Lines differ by dash or marker,
// too.
func TestOtherLine(t *testing.T) {
	t.Parallel()
	for groups, want := range map[int]struct {
		lines int
		last  string
		hits  int64
	}{8: {8, "T01", 1}, 9: {9, "other (1)", 1}, 12: {9, "other (4)", 1 + 2 + 3 + 4}} {
		synctest.Test(t, func(t *testing.T) {
			srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
			for i := 1; i <= groups; i++ { // T12 has 12 events
				for range i {
					srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-time.Minute), Action: fmt.Sprintf("T%02d", i)})
				}
			}
			q, err := report.NewQuery("1h", nil, time.Now())
			require.NoError(t, err)
			p := report.Read(t.Context(), srv.Client(t).Stats, q).Requests
			lines := p.Chart.Lines
			require.Len(t, lines, want.lines)
			assert.Equal(t, want.last, lines[want.lines-1].Name)
			assert.Equal(t, want.hits, lines[want.lines-1].Hits)
			sum, looks, colours := int64(0), map[string]bool{}, map[string]bool{}
			for _, line := range lines {
				for _, value := range line.Values {
					sum += value
				}
				looks[fmt.Sprint(line.Style.Dash, line.Style.Marker)] = true
				colours[line.Style.Colour] = true
			}
			assert.Equal(t, p.Total, sum)
			assert.Len(t, looks, want.lines)
			assert.Len(t, colours, want.lines)
		})
	}
}

// A long text loses its middle, never its end.
func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "12345678": "12345678", "123456789": "1234…789", "ääääääääöö": "ääää…äöö",
		strings.Repeat("x", 500) + "end": "xxxx…end",
	} {
		assert.Equal(t, want, report.Short(text, 8))
	}
}
