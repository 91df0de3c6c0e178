package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/filters"
)

// state is the JSON of FILE.cursor: everything that -resume needs.
type state struct {
	Version int                `json:"version"`
	Query   storedQuery        `json:"query"`
	Format  string             `json:"format"`
	Cursor  webdelivery.Cursor `json:"cursor"`           // after the last row that is safe on disk
	Size    int64              `json:"size"`             // in bytes, of FILE.partial at the cursor; of Parquet, of the last part
	Parts   int                `json:"parts"`            // of Parquet: the number of complete parts
	Done    bool               `json:"done"`             // all rows are on disk; only renames are left
	Follow  time.Duration      `json:"follow,omitempty"` // the delay of -follow, in nanoseconds

	Lookback time.Duration `json:"lookback,omitempty"` // in nanoseconds
}

// storedQuery is the query of the flags.
type storedQuery struct {
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Columns []string  `json:"columns"` // in the order of the header
	Filter  string    `json:"filter"`
	Limit   int       `json:"limit"`
}

const stateVersion = 1

func newState(set settings) state {
	q := set.query
	s := state{Version: stateVersion, Format: set.format, Follow: set.follow, Lookback: set.lookback, Query: storedQuery{q.Start, q.End, q.Dimensions, "", q.Limit}}
	if q.Filter != nil {
		s.Query.Filter = q.Filter.String()
	}
	return s
}

func cursorOf(file string) string    { return file + ".cursor" }
func newCursorOf(file string) string { return file + ".cursor.new" } // until it is complete
func partialOf(file string) string   { return file + ".partial" }

// rowsOf is where the rows go: -follow never completes a file.
func (s state) rowsOf(file string) string {
	if s.Follow > 0 {
		return file
	}
	return partialOf(file)
}

// readState reads the state of the export to a file.
func readState(file string) (s state, err error) {
	name := cursorOf(file)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, program.Misused("there is no %s, so no export to %s has ended early; -resume takes the file that -o named", name, file)
	}
	if err != nil {
		return s, program.Misused("%w", err)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err = json.Unmarshal(text, &version); err == nil {
		if version.Version != stateVersion {
			return s, fmt.Errorf("%s has version %d, and this program reads version %d; continue with the version that began, or export again with -o %s",
				name, version.Version, stateVersion, file)
		}
		err = json.Unmarshal(text, &s)
	}
	if err == nil && (s.Size < 0 || s.Parts < 0 || table.Formats[s.Format] == nil || len(s.Query.Columns) == 0) {
		err = errors.New("this program did not write it")
	}
	if err != nil {
		return s, fmt.Errorf("%s is damaged: %w; export again with -o %s", name, err, file)
	}
	return s, nil
}

// write replaces FILE.cursor. The temporary name is fixed, so that a later run removes what a kill leaves.
func (s state) write(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	out, err := create(newCursorOf(file))
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(newCursorOf(file), cursorOf(file))
}

// create creates a file that only its owner can read. It replaces an old file, and does not follow a link of that name.
func create(name string) (*os.File, error) {
	if err := remove(name); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// remove removes a file, if it exists.
func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// resumed returns the settings of an export that continues.
func resumed(file string) (set settings, err error) {
	s, err := readState(file)
	if exit := new(*program.Exit); err != nil && !errors.As(err, exit) {
		err = &program.Exit{Code: program.Failed, Err: err} // even if its cursor is refused as invalid
	}
	if err != nil {
		return set, err
	}
	q := s.Query
	set = settings{format: s.Format, file: file, saved: &s, follow: s.Follow, lookback: s.Lookback, query: webdelivery.EventsQuery{
		Start: q.Start, End: q.End, Dimensions: q.Columns, Limit: q.Limit,
	}}
	if q.Filter != "" {
		set.query.Filter, err = filters.Parse(q.Filter)
	}
	if err != nil {
		return set, &program.Exit{Code: program.Failed, Err: fmt.Errorf("%s is damaged: %w; export again with -o %s", cursorOf(file), err, file)}
	}
	return set, nil
}
