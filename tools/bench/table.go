package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// table is printed as text, and inserted between the markers of a page.
type table struct {
	name  string // of its markers
	head  []string
	lines [][]string
}

func (t *table) add(cells ...string) { t.lines = append(t.lines, cells) }

func goalTable() *table {
	return &table{name: "goals", head: []string{"What", "This SDK", "Reference", "Ratio", "Goal", ""}}
}

func (t *table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w)
	for _, line := range append([][]string{t.head}, t.lines...) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

// insert replaces the text between the markers of a Markdown page by the table.
func (t *table) insert(page, machine string) error {
	text, err := os.ReadFile(page) //nolint:gosec // the page that -markdown names
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- bench:%s -->\n", t.name), fmt.Sprintf("<!-- end of bench:%s -->", t.name)
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s lacks %s or %s", page, strings.TrimSpace(begin), end)
	}
	var b strings.Builder
	b.WriteString(before + begin + machine + "\n\n")
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---"
	}
	for _, line := range append([][]string{t.head, rule}, t.lines...) {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
	}
	b.WriteString(end + after)
	return os.WriteFile(page, []byte(b.String()), 0o644) //nolint:gosec // documentation that everyone may read
}

// goal is the goal of a figure. The zero value is no goal.
type goal struct {
	text string
	met  bool
}

func atMost(most, got float64, unit string) goal {
	return goal{strings.TrimSpace(fmt.Sprintf("at most %.4g %s", most, unit)), got <= most}
}

func timesFaster(least, got float64) goal {
	return goal{fmt.Sprintf("at least %.3g times faster", least), got >= least}
}

func (g goal) verdict() string {
	switch {
	case g.text == "":
		return ""
	case g.met:
		return "met"
	default:
		return "missed"
	}
}

// figure adds a line to the table of goals.
func (b *bench) figure(what, sdk, reference, ratio string, g goal) {
	b.goals.add(what, sdk, reference, ratio, g.text, g.verdict())
}

// The units of figures.

const mib = 1 << 20

func inBytes(n float64) string {
	if n < mib {
		return fmt.Sprintf("%.1f KiB", n/1024)
	}
	return fmt.Sprintf("%.1f MiB", n/mib)
}

func inTime(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	}
}

func times(ratio float64) string { return fmt.Sprintf("%.2f", ratio) }

func faster(ratio float64) string { return fmt.Sprintf("%.3g times faster", ratio) }

// count groups the digits of a number by three.
func count(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
