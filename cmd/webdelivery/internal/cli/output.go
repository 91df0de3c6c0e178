package cli

import (
	"encoding/csv"
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
	"github.com/spf13/pflag"
)

// Formats are those of a command that prints records.
var Formats = []string{"table", "json", "ndjson", "csv"}

// Format adds -o, and returns its value. The first format is the default.
func Format(c *cobra.Command, formats ...string) *string {
	value := &choice{formats[0], formats}
	c.Flags().VarP(value, "output", "o", "`format` of the output: "+strings.Join(formats, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return &value.text
}

// Choice adds a flag that has one of these values.
func Choice(flags *pflag.FlagSet, name, value, usage string, values ...string) *string {
	c := &choice{value, values}
	flags.Var(c, name, usage+": "+strings.Join(values, ", "))
	return &c.text
}

type choice struct {
	text   string
	values []string
}

func (c *choice) String() string { return c.text }
func (c *choice) Type() string   { return "word" }

// Set takes one of the values.
func (c *choice) Set(text string) error {
	if c.text = text; !slices.Contains(c.values, text) {
		return errors.New("want " + strings.Join(c.values, ", "))
	}
	return nil
}

// Record is something that a command prints.
type Record struct {
	Value any      // for JSON
	Cells []string // for table and csv
}

// Print prints records below a header, which is in lower case. After an error it has printed those before it,
// or nothing if there are none.
func (a *App) Print(format string, header []string, records iter.Seq2[Record, error]) (failed error) {
	var rows [][]string
	values := []any{}
	line, none := csv.NewWriter(a.Out), true
	if format == "csv" {
		_ = line.Write(header) // Flush tells
	}
	for record, err := range records {
		if err != nil && none {
			return err
		}
		if failed, none = err, false; err != nil {
			break
		}
		switch format {
		case "table":
			rows = append(rows, record.Cells)
		case "json":
			values = append(values, record.Value)
		case "csv":
			_ = line.Write(record.Cells)
		case "ndjson":
			if err := a.JSON(record.Value, false); err != nil {
				return err
			}
		}
	}
	switch format {
	case "table":
		failed = errors.Join(failed, a.table(header, rows))
	case "json":
		failed = errors.Join(failed, a.JSON(values, true))
	case "csv":
		line.Flush()
		failed = errors.Join(failed, line.Error())
	}
	return failed
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

// table prints rows in columns. On a terminal, the widest column is cut where a line would not fit.
func (a *App) table(header []string, rows [][]string) error {
	upper := make([]string, len(header))
	for i, name := range header {
		upper[i] = strings.ToUpper(name)
	}
	all := append([][]string{upper}, rows...)
	widths := make([]int, len(header))
	for _, row := range all {
		for i, cell := range row {
			row[i] = Printable(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if a.OutTerminal && a.Width > 0 {
		if len(widths) > 1 && widths[0] <= len("00000000-0000-0000-0000-000000000000") { // a cut id is of no use
			fit(widths[1:], a.Width-widths[0]-2)
		}
		fit(widths, a.Width)
	}
	var text strings.Builder
	for _, row := range all {
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

// Time returns the text of a time in a table; that of the zero time is empty.
func Time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// fit narrows the widest columns until all of them, with two spaces between them, fit.
func fit(widths []int, all int) {
	const narrowest = 8
	for sum := 2 * (len(widths) - 1); ; sum = 2 * (len(widths) - 1) {
		widest := 0
		for i, width := range widths {
			sum += width
			if width >= widths[widest] {
				widest = i
			}
		}
		if sum <= all || widths[widest] <= narrowest {
			return
		}
		widths[widest]--
	}
}

// Printable escapes characters that a terminal would obey or that would move the text beside them.
func Printable(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if hidden(r) {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// Show replaces the last text on a terminal; "" removes it. If Err is not a terminal, Show does nothing. Only one
// goroutine at a time may call it.
func (a *App) Show(text string) {
	if a.ErrTerminal {
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
