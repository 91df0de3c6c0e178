package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Formats are those of a command that prints records.
var Formats = []string{"table", "json", "ndjson", "csv"}

// Format adds -o, and returns its value. The first format is the default.
func Format(c *cobra.Command, formats ...string) *string {
	return Choice(c, "output", "o", formats[0], "`format` of the output", formats...)
}

// Choice adds a flag that has one of these values, and returns its value.
func Choice(c *cobra.Command, name, short, first, usage string, values ...string) *string {
	words := strings.Join(values, ", ")
	chosen := &flag{text: first, set: func(text string) error {
		if !slices.Contains(values, text) {
			return errors.New("want " + words)
		}
		return nil
	}}
	c.Flags().VarP(chosen, name, short, usage+": "+words)
	_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	return &chosen.text
}

// Print prints items below a header, which is in lower case. In JSON, an item is encoded as it is; cells returns it for
// the other formats. After an error, Print has printed the items before it, or nothing if there are none.
func Print[T any](a *App, format string, header []string, items iter.Seq2[T, error], cells func(T) []string) error {
	all, rows := []T{}, [][]string{}
	var lines bytes.Buffer
	csv := CSV()
	if format == "csv" {
		lines.Write(csv(header))
	}
	var failed error
	done := 0
	for item, err := range items {
		switch {
		case err != nil:
		case format == "table":
			rows = append(rows, cells(item))
		case format == "json":
			all = append(all, item)
		case format == "csv":
			lines.Write(csv(cells(item)))
		default:
			err = a.JSON(item, false)
		}
		if failed = err; failed != nil {
			break
		}
		done++
	}
	if failed != nil && done > 0 {
		failed = &Exit{Partly, failed}
	}
	switch {
	case failed != nil && done == 0:
		return failed
	case format == "table":
		return errors.Join(failed, a.table(header, rows))
	case format == "json":
		return errors.Join(failed, a.JSON(all, true))
	}
	_, err := a.Out.Write(lines.Bytes())
	return errors.Join(failed, err)
}

// All yields the items of a slice for [Print].
func All[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// JSON prints a value on one line, or indented.
func (a *App) JSON(value any, indented bool) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	if indented {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(value)
}

// table prints rows in columns. On a terminal, texts are cut where a line would not fit.
func (a *App) table(header []string, rows [][]string) error {
	widths := make([]int, len(header))
	upper := make([]string, len(header))
	for i, name := range header {
		upper[i] = strings.ToUpper(name)
	}
	rows = append([][]string{upper}, rows...)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Printable(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if a.OutTerminal && a.Width > 0 {
		fit(widths, rows, a.Width)
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if runes := []rune(cell); len(runes) > widths[i] {
				cell = string(runes[:widths[i]-1]) + "…"
			}
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(a.Out, text.String())
	return err
}

// fit narrows the columns of texts, which are cells with spaces, the widest first, until a line fits. Of an id, an address
// or a time, a part is of no use.
func fit(widths []int, rows [][]string, most int) {
	const narrowest = 8
	var texts []int
	excess := 2*(len(widths)-1) - most
	for i, width := range widths {
		excess += width
		if slices.ContainsFunc(rows, func(row []string) bool { return strings.Contains(row[i], " ") }) {
			texts = append(texts, i)
		}
	}
	for ; excess > 0 && len(texts) > 0; excess-- {
		widest := slices.MaxFunc(texts, func(a, b int) int { return cmp.Compare(widths[a], widths[b]) })
		if widths[widest] <= narrowest {
			return
		}
		widths[widest]--
	}
}

// Time returns the text of a time in a table; that of the zero time is empty.
func Time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// Printable escapes characters that a terminal would obey or that would move the text beside them.
func Printable(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return out.String()
}

// console is a terminal that obeys no control character of the service's texts but the ends of lines.
type console struct{ io.Writer }

// Write writes a text. Where it begins or ends within a character, that is escaped, too.
func (t console) Write(p []byte) (int, error) {
	lines := strings.Split(strings.ReplaceAll(string(p), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	_, err := io.WriteString(t.Writer, strings.Join(lines, "\n"))
	return len(p), err
}

// Show replaces the last text on a terminal; "" removes it. Only one goroutine at a time may call it.
func (a *App) Show(text string) {
	if a.ErrTerminal {
		text = plain(text)
		if runes := []rune(text); a.Width > 0 && len(runes) >= a.Width {
			text = string(runes[:a.Width-1])
		}
		fmt.Fprintf(a.Err, "\r%s\x1b[K", text) // \x1b[K clears the rest of the line
	}
}

// Bar returns a progress bar for Show.
func Bar(percent int) string {
	const width = 30
	percent = min(max(percent, 0), 100) // the range of the service's is not documented
	done := width * percent / 100
	return fmt.Sprintf("[%s%s] %3d %%", strings.Repeat("#", done), strings.Repeat(".", width-done), percent)
}

// WriteFile replaces a file by one that only its owner can read. The old file stays until the new one is complete.
func WriteFile(name string, text []byte) error {
	if there, err := os.Lstat(name); err == nil && !there.Mode().IsRegular() {
		return Misused("%s is not a regular file; name another file", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return Misused("%s cannot be written: %w", name, errors.Unwrap(err)) // the cause, without the name of the other file
	}
	defer os.Remove(file.Name()) // does nothing after the rename
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil { // without Sync, a crash could leave an empty file
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return os.Rename(file.Name(), name)
}
