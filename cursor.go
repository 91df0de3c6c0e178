package webdelivery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/filelock"
	"github.com/webdelivery/webdelivery-go/internal/resume"
)

// Cursor is the position of an [Export]. Store it as JSON, for example in a [CursorFile], so that another process can
// continue. The JSON has a keyed checksum of 11 bytes for each event of the last two seconds and of
// [ExportOptions.Lookback], and no content of any event. The zero value is the start of the time range.
type Cursor struct{ state *cursorState }

// cursorState is the JSON of a cursor. It never changes.
type cursorState struct {
	Query    exportQuery      `json:"query"`
	Key      []byte           `json:"key"` // of the checksums
	Columns  []string         `json:"columns"`
	Position *resume.Position `json:"position"`
}

const (
	cursorVersion = 1
	maxCursor     = 64 << 20
)

func checkOf(cursor []byte) string {
	sum := sha256.Sum256(cursor)
	return hex.EncodeToString(sum[:8])
}

// position returns an empty position for the zero value.
func (c Cursor) position() *resume.Position {
	if c.state == nil {
		return &resume.Position{}
	}
	return c.state.Position
}

// Count returns the number of events up to the cursor.
func (c Cursor) Count() int64 { return c.position().Handed }

// Time returns the latest time of an event up to the cursor, or the zero time at the start.
func (c Cursor) Time() time.Time { return c.position().Latest }

// Reached returns the end of the last range over [Export.All] that read everything, also if it had no events, or the
// zero time. Its distance from now is how far an export is behind.
func (c Cursor) Reached() time.Time { return c.position().Until }

// MarshalJSON returns the cursor as JSON; the zero value is null.
func (c Cursor) MarshalJSON() ([]byte, error) {
	if c.state == nil {
		return []byte("null"), nil
	}
	state, err := json.Marshal(c.state)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"version":%d,"check":%q,"cursor":%s}`, cursorVersion, checkOf(state), state), nil
}

// UnmarshalJSON reads a stored cursor. If b is not a cursor, is damaged, has more than 64 MiB, or is one of another
// version, it returns a [*ValidationError].
func (c *Cursor) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		c.state = nil
		return nil
	}
	if len(b) > maxCursor {
		return invalid("cursor", "has %d bytes, which are more than %d", len(b), maxCursor)
	}
	var stored struct {
		Version int             `json:"version"`
		Check   string          `json:"check"` // because a damaged cursor would yield events twice
		Cursor  json.RawMessage `json:"cursor"`
	}
	var compact bytes.Buffer
	var state cursorState
	switch err := json.Unmarshal(b, &stored); {
	case err != nil || stored.Version == 0:
		return invalid("cursor", "is not the JSON of a cursor")
	case stored.Version != cursorVersion:
		return invalid("cursor", "has version %d, and this SDK reads version %d; begin a new export without a cursor, with the time of the last event that you have as Start",
			stored.Version, cursorVersion)
	case json.Compact(&compact, stored.Cursor) != nil, stored.Check != checkOf(compact.Bytes()), json.Unmarshal(stored.Cursor, &state) != nil,
		state.Position == nil || len(state.Key) != 16:
		return invalid("cursor", "is damaged, or is not the JSON of a cursor")
	}
	c.state = &state
	return nil
}

// exportQuery identifies the query of a cursor. Scheme and host of the service, and the time range, are no part of it.
type exportQuery struct {
	Customer   string `json:"customer"`
	Path       string `json:"path"` // of the base URL
	Dimensions string `json:"dimensions"`
	Filter     string `json:"filter"`
}

func (p *statsParams) exportQuery(c *conn) exportQuery {
	q := exportQuery{Customer: c.base.Customer(), Path: path.Dir(path.Dir(c.base.Path(""))), Dimensions: strings.Join(p.Dimensions, ",")}
	if p.Filter != nil {
		q.Filter = filters.Expr.String(p.Filter)
	}
	return q
}

// differs names what differs between the queries; "" if nothing does.
func (q exportQuery) differs(other exportQuery) string {
	names := []string{"customer", "path of the base URL", "dimensions", "filter"}
	equal := []bool{q.Customer == other.Customer, q.Path == other.Path, q.Dimensions == other.Dimensions, q.Filter == other.Filter}
	i := -1
	return strings.Join(slices.DeleteFunc(names, func(string) bool { i++; return equal[i] }), " and ")
}

// CursorFile is a file with the cursor of an export, which can only be open once at a time. Open it with
// [OpenCursorFile], and close it when done.
type CursorFile struct {
	Cursor Cursor // what the file held when it was opened; zero if it did not exist

	name string
	lock *os.File // nil if the file is closed
}

// OpenCursorFile opens a file for the cursor of an export, and reads the cursor. The file need not exist, but its folder
// must. A symbolic link stands for the file that it leads to. If the file is already open, the error matches
// [ErrCursorInUse]; if its content is no cursor, it is a [*ValidationError]. The lock is on a second file, name.lock,
// which stays; it ends with the process.
func OpenCursorFile(name string) (*CursorFile, error) {
	if name == "" {
		return nil, invalid("name", "is empty")
	}
	name = linked(name)
	lock, err := filelock.Open(name + ".lock")
	if errors.Is(err, filelock.ErrLocked) {
		err = fmt.Errorf("%w: %s", ErrCursorInUse, name)
	}
	if err != nil {
		return nil, err
	}
	f := &CursorFile{name: name, lock: lock}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = f.Cursor.UnmarshalJSON(bytes.TrimSpace(text))
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// ErrCursorInUse means that the [CursorFile] is already open.
var ErrCursorInUse = errors.New("webdelivery: the cursor file is already open, as a rule in another process")

// Store replaces the content of the file, and returns when it is on disk. If it fails, the file keeps its old content.
// Only its owner can read the file. What was delivered since is delivered again after a kill, with the same
// [Export.Key].
func (f *CursorFile) Store(cursor Cursor) error {
	if f.lock == nil {
		return fs.ErrClosed
	}
	text, err := cursor.MarshalJSON()
	if err != nil {
		return err
	}
	name := f.name + ".new"
	_ = os.Remove(name) // what a kill has left
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(name) // does nothing after the rename
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync() // a crash could leave an empty file otherwise
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(name, f.name); err != nil {
		return err
	}
	if folder, err := os.Open(filepath.Dir(f.name)); err == nil {
		_ = folder.Sync() // so that a crash cannot undo the rename; not every system can
		_ = folder.Close()
	}
	return nil
}

// linked returns the file to which symbolic links lead, so that it is locked and replaced and not a link.
func linked(name string) string {
	if to, err := filepath.EvalSymlinks(name); err == nil {
		return to
	}
	for range 40 { // as many links as systems follow; the file does not exist yet
		to, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return name // an error says so later
	}
	return filepath.Join(folder, filepath.Base(name))
}

// Close lets others open the file. It does not store anything.
func (f *CursorFile) Close() error {
	lock := f.lock
	if f.lock = nil; lock == nil {
		return fs.ErrClosed
	}
	return lock.Close()
}
