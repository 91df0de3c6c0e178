package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// rowsOf returns the rows of Parquet files, one after the other.
func rowsOf(t *testing.T, files ...string) (rows []string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		in, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		for _, group := range in.RowGroups() {
			reader, buffer := group.Rows(), make([]parquet.Row, 1)
			for range group.NumRows() {
				_, err := reader.ReadRows(buffer)
				require.True(t, err == nil || errors.Is(err, io.EOF), err)
				rows = append(rows, fmt.Sprint(buffer[0]))
			}
			require.NoError(t, reader.Close())
		}
	}
	return rows
}

// Parquet continues in a new part. All parts together have the rows of one file, in the same order.
func TestParquetGoesOn(t *testing.T) {
	t.Parallel()
	for how := range earlyEnds {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, many, func(t *testing.T, srv *webdeliverytest.Server) {
				whole := filepath.Join(t.TempDir(), "whole.parquet")
				require.NoError(t, export1(t.Context(), t, srv, program.Streams{Err: io.Discard}, flagsOfMany(whole)...))

				file := filepath.Join(t.TempDir(), "events.parquet")
				require.NoError(t, os.WriteFile(file, []byte("yesterday's"), 0o600))
				first := endEarly(t, srv, how, file, flagsOfMany(file)...)
				left := []string{"events.parquet.cursor"}
				for part := range first.Parts {
					left = append(left, filepath.Base(partOf(file, part+1)))
				}
				assertOnly(t, file, "yesterday's", left...)
				assert.Len(t, rowsOf(t, partsOf(t, file)...), int(first.Cursor.Count()))

				lost := partOf(file, first.Parts+1) // a kill came after this part had its name, and before its cursor was stored
				require.NoError(t, os.WriteFile(lost, nil, 0o600))
				require.NoError(t, os.WriteFile(partialOf(file), []byte("half"), 0o600))
				var told bytes.Buffer
				require.NoError(t, start(t.Context(), srv, t, &told, "-resume", file))
				parts := partsOf(t, file)
				assert.Greater(t, len(parts), first.Parts)
				assert.Equal(t, rowsOf(t, whole), rowsOf(t, parts...))
				assert.Equal(t, fmt.Sprintf("events: 300 events in %s, which has %d parts, %s to %s\n", file, len(parts), parts[0], parts[len(parts)-1]), told.String())
				entries, err := os.ReadDir(filepath.Dir(file))
				require.NoError(t, err)
				assert.Len(t, entries, len(parts), "yesterday's file, the cursor and what was half are gone")
			})
		})
	}
}

// partsOf returns the names of all parts that exist.
func partsOf(t *testing.T, file string) []string {
	t.Helper()
	parts, err := filepath.Glob(patternOf(file))
	require.NoError(t, err)
	return parts
}

// A part has at most the given number of rows. A single part becomes the file.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit string
		parts []int
	}{
		{"49", nil}, {"50", nil}, {"51", []int{50, 1}}, {"100", []int{50, 50}}, {"0", []int{50, 50, 50, 50, 50, 50}},
	} {
		file := filepath.Join(t.TempDir(), "events.parquet")
		require.NoError(t, start(t.Context(), service(t, many), t, io.Discard, flagsOfMany(file, "-limit", tt.limit)...))
		var rows []int
		for _, part := range partsOf(t, file) {
			rows = append(rows, len(rowsOf(t, part)))
		}
		assert.Equal(t, tt.parts, rows, tt.limit)
		if tt.parts == nil {
			assert.Equal(t, tt.limit, fmt.Sprint(len(rowsOf(t, file))))
		}
	}
}
