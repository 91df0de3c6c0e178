package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// If an export cannot be resumed, the error says why, and what to do. Nothing is changed.
func TestDamagedStates(t *testing.T) {
	t.Parallel()
	edit := func(from, to string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			t.Helper()
			text, err := os.ReadFile(cursorOf(file))
			require.NoError(t, err)
			require.Contains(t, string(text), from)
			require.NoError(t, os.WriteFile(cursorOf(file), bytes.Replace(text, []byte(from), []byte(to), 1), 0o600))
		}
	}
	without := func(name func(string) string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			t.Helper()
			require.NoError(t, os.Remove(name(file)))
		}
	}
	shorten := func(name func(string) string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			t.Helper()
			info, err := os.Stat(name(file))
			require.NoError(t, err)
			require.NoError(t, os.Truncate(name(file), info.Size()-3))
		}
	}
	part1 := func(file string) string { return partOf(file, 1) }
	last := func(file string) string {
		parts, _ := filepath.Glob(patternOf(file))
		return slices.Max(parts)
	}
	for want, tt := range map[string]struct {
		format string
		damage func(t *testing.T, file string)
	}{
		"has ended early; -resume takes the file that -o named":          {"csv", without(cursorOf)},
		"events.csv.partial, to which ":                                  {"csv", without(partialOf)},
		": 3 are missing; export again with -o ":                         {"csv", shorten(partialOf)},
		"has version 9, and this program reads version 1; continue with": {"csv", edit(`{"version":1`, `{"version":9`)},
		"events.csv.cursor is damaged: invalid character":                {"csv", shorten(cursorOf)},
		"damaged: this program did not write it; export":                 {"csv", edit(`"csv"`, `"xlsx"`)},
		"damaged: webdelivery: invalid cursor":                           {"csv", edit(`"cursor":{"version":1`, `"cursor":{"version":2`)},
		"damaged: filters":                                               {"csv", edit(`"filter":""`, `"filter":"a"`)},
		"filter differs; use the service and the customer that the":      {"csv", edit(`"filter":""`, `"filter":"rule_id==a"`)},
		"and one is missing":                                             {"parquet", without(part1)},
		"bytes, and had ":                                                {"parquet", shorten(last)},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, many, func(t *testing.T, srv *webdeliverytest.Server) {
				file := filepath.Join(t.TempDir(), "events."+tt.format)
				endEarly(t, srv, "refused", file, flagsOfMany(file)...)
				tt.damage(t, file)
				before, _ := os.ReadFile(cursorOf(file))
				err := start(t.Context(), srv, t, io.Discard, "-resume", file)
				require.ErrorContains(t, err, want)
				assert.NotContains(t, err.Error(), "continue with: events -resume", "which would end in the same way")
				assert.NoFileExists(t, file)
				after, _ := os.ReadFile(cursorOf(file))
				assert.Equal(t, string(before), string(after))
			})
		})
	}
}

// The cursor is never ahead of the rows on disk. This holds after a failed write or save, and for a row that was read
// and not written.
func TestTheCursorIsNeverAhead(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		for _, fails := range []string{"write", "save", "nothing"} {
			srv := service(t, many)
			file := filepath.Join(t.TempDir(), "events."+format)
			set, err := parse(flagsOfMany(file), program.Streams{Err: io.Discard}, noon.Add(time.Hour))
			require.NoError(t, err)
			set.pace = often
			events := srv.Client(t).Stats.NewExport(set.query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
			var out *partial
			rows, saved, inTheWay := 0, "", filepath.Join(newCursorOf(file), "in the way")
			for row, err := range events.All(t.Context()) {
				require.NoError(t, err)
				if out == nil {
					out, err = newPartial(set, columnsOf(t, row.Columns()...), events.Cursor)
					require.NoError(t, err)
					defer out.Close()
				}
				if rows++; rows == 105 {
					text, err := os.ReadFile(cursorOf(file))
					require.NoError(t, err)
					saved = string(text)
					switch fails {
					case "write":
						require.NoError(t, out.file.Close()) // every later write fails, as on a full disk
					case "save":
						require.NoError(t, os.MkdirAll(inTheWay, 0o700))
					}
				}
				if rows == 105 && fails == "nothing" {
					break // read, and not written
				}
				if err := out.Write(row); err != nil {
					break
				}
			}
			require.NotEmpty(t, saved)
			require.NoError(t, os.RemoveAll(newCursorOf(file))) // a second try would work, but what the first has written is unknown
			kept, _ := out.Keep()
			text, err := os.ReadFile(cursorOf(file))
			require.NoError(t, err)
			assert.Equal(t, saved, string(text), "%s, %s fails", format, fails)
			assert.EqualValues(t, map[string]int{"csv": 98, "ndjson": 98, "parquet": 100}[format], kept)
		}
	}
}

// columnsOf returns all columns of a response.
func columnsOf(t *testing.T, names ...string) []table.Column {
	t.Helper()
	columns, err := table.Pick(names, names)
	require.NoError(t, err)
	return columns
}
