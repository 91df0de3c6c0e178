package report_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/examples/dashboard/report"
)

// A word has the colour of its meaning in both vocabularies and in any letter case. Unknown words have a colour each.
func TestColours(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ words, colours []string }{
		"actions of the document":    {[]string{"WARN", "BLOCK", "none"}, []string{"c2", "c3", "c6"}},
		"actions of portals":         {[]string{"Warn", "Block", "none"}, []string{"c2", "c3", "c6"}},
		"severities of the fake":     {[]string{"CRITICAL", "ERROR", "WARNING", "NOTICE"}, []string{"c3", "c2", "c1", "c6"}},
		"severities of portals":      {[]string{"High", "Medium", "Low", "Info"}, []string{"c3", "c2", "c1", "c6"}},
		"types":                      {[]string{"WAF", "Rate Limit", "Custom"}, []string{"c1", "c4", "c5"}},
		"unknown beside known":       {[]string{"Challenge", "Block", "Tarpit", "Low"}, []string{"c4", "c3", "c5", "c1"}},
		"two of one meaning":         {[]string{"High", "Critical", "BLOCK"}, []string{"c3", "c1", "c4"}},
		"unknown in another writing": {[]string{"блок", ""}, []string{"c1", "c4"}},
		"none":                       {nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.colours, report.Colours(tc.words))
		})
	}
	many := report.Colours(slices.Repeat([]string{"x"}, 20))
	assert.NotContains(t, many, "")
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(many[:8]))), 8)
}
