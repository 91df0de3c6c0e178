package conformance

import (
	"fmt"
	"strings"
)

// Report returns a summary, a Markdown table of the results, and the lines of [Service.Unnamed].
func Report(results []Result, unnamed []string) string {
	count := map[Verdict]int{}
	for _, r := range results {
		count[r.Verdict]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rules: %d hold, %d differ, %d left open, %d not tried\n\n", len(results), count[Holds], count[Differs],
		count[Seen], count[NotTried])
	b.WriteString("| Section | Rule | Open point | Result | Detail |\n|---|---|---|---|---|\n")
	for _, r := range results {
		point := ""
		if r.Point > 0 {
			point = fmt.Sprint(r.Point)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Section, r.Text, point, r.Verdict, cell(r.Detail))
	}
	if unnamed != nil {
		b.WriteString("\nMembers that the document does not name:\n\n")
	}
	for _, line := range unnamed {
		fmt.Fprintf(&b, "- %s\n", cell(line))
	}
	return b.String()
}

// cell escapes a text of the service, so that it cannot break the table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(OneLine(text))
}

// OneLine truncates a text of the service, and replaces its control characters.
func OneLine(text string) string {
	const longest = 300
	quoted := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(quoted); len(runes) > longest {
		quoted = string(runes[:longest]) + "..."
	}
	return quoted
}
