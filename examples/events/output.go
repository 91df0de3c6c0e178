package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// output receives the rows of an export.
type output interface {
	Write(row webdelivery.Row) error
	Keep() (rows int64, err error) // after an early end; rows counts all that are kept, also those before -resume
	Finish() error                 // all rows are written
	Close()                        // closes files; always called
}

// stream writes to stdout.
type stream struct {
	table.Writer
	rows int64
}

// Write writes a row.
func (s *stream) Write(row webdelivery.Row) error {
	s.rows++
	return s.Writer.Write(row)
}

// Keep writes the buffered rows, so that stdout ends with a complete row.
func (s *stream) Keep() (int64, error) { return s.rows, s.Flush() }

// Finish ends the table.
func (s *stream) Finish() error { return s.Writer.Close() }

// Close does nothing: stdout stays open.
func (s *stream) Close() {}

// pace bounds how much must be read again after a kill.
type pace struct {
	rows  int64         // CSV and NDJSON are saved after that many rows,
	every time.Duration // or after that time
	part  int64         // rows in a part of Parquet
}

var usual = pace{rows: 100_000, every: 5 * time.Second, part: 1_000_000}

// partial writes to FILE.partial. It stores its position in FILE.cursor, always after the rows are safe on disk.
type partial struct {
	state

	name    string // FILE
	columns []table.Column
	pace    pace
	cursor  func() webdelivery.Cursor // after the last row that was read

	file   *os.File
	table  table.Writer // nil between two parts
	rows   int64        // written, including those before -resume
	recent int64        // since the last save
	saved  time.Time
	broken bool // a write has failed: what of it is on disk is unknown, so nothing more is saved
}

// newPartial creates FILE.partial, or continues it. A new export removes the files of an earlier one.
func newPartial(set settings, columns []table.Column, cursor func() webdelivery.Cursor) (p *partial, err error) {
	p = &partial{name: set.file, columns: columns, pace: set.pace, cursor: cursor, saved: time.Now()}
	if set.saved == nil {
		p.state = newState(set)
		err = program.Unwritten(set.file, p.create())
	} else {
		p.state, p.rows = *set.saved, set.saved.Cursor.Count()
		err = p.reopen()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// create removes the files of an earlier export, its cursor last, and begins.
func (p *partial) create() error {
	err := removeParts(p.name)
	if err == nil {
		err = p.startTable()
	}
	if err != nil {
		return err
	}
	return p.state.write(p.name)
}

// startTable begins a table in FILE.partial.
func (p *partial) startTable() (err error) {
	p.file, err = create(p.rowsOf(p.name))
	if err == nil {
		p.table, err = table.Formats[p.Format](p.file, p.columns, false)
	}
	return err
}

// reopen continues after the rows that belong to the cursor.
func (p *partial) reopen() (err error) {
	if p.inParts() {
		return p.checkParts()
	}
	name := p.rowsOf(p.name)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s, to which %s belongs; export again with -o %s", name, cursorOf(p.name), p.name)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; export again with -o %s", name, p.name)
	case info.Size() < p.Size:
		return fmt.Errorf("%s has %d bytes, and %d belong to its %d events: %d are missing; export again with -o %s",
			name, info.Size(), p.Size, p.rows, p.Size-info.Size(), p.name)
	}
	if p.file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return err
	}
	if err := p.file.Truncate(p.Size); err != nil {
		return err
	}
	if _, err := p.file.Seek(p.Size, io.SeekStart); err != nil {
		return err
	}
	p.table, err = table.Formats[p.Format](p.file, p.columns, p.Size > 0)
	return err
}

// Write writes a row, and saves when it is time.
func (p *partial) Write(row webdelivery.Row) error {
	err := p.write(row)
	p.broken = p.broken || err != nil
	return err
}

func (p *partial) write(row webdelivery.Row) error {
	if p.table == nil {
		if err := p.startTable(); err != nil {
			return err
		}
	}
	if err := p.table.Write(row); err != nil {
		return err
	}
	p.rows++
	p.recent++
	switch {
	case p.inParts() && p.recent >= p.pace.part:
		return p.endPart()
	case !p.inParts() && (p.recent >= p.pace.rows || time.Since(p.saved) >= p.pace.every):
		return p.save(p.table.Flush)
	default:
		return nil
	}
}

// save syncs the rows to disk, and then stores the cursor.
func (p *partial) save(flush func() error) error {
	if err := p.sync(flush); err != nil {
		return err
	}
	return p.store()
}

func (p *partial) sync(flush func() error) (err error) {
	if err := flush(); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	if err := p.checkOwn(); err != nil {
		return err
	}
	p.Size, err = p.file.Seek(0, io.SeekCurrent)
	return err
}

// checkOwn checks that FILE.partial is still the file of this program. Another program that starts again replaces it,
// and its incomplete file must not become FILE.
func (p *partial) checkOwn() error {
	own, err := p.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(p.rowsOf(p.name))
	if err != nil || !os.SameFile(own, there) {
		return fmt.Errorf("%s now belongs to another program; only one at a time may write to a file: stop this one or name another file", p.rowsOf(p.name))
	}
	return nil
}

func (p *partial) store() error {
	next := p.state
	next.Cursor = p.cursor()
	if err := next.write(p.name); err != nil {
		return err
	}
	p.state, p.recent, p.saved = next, 0, time.Now()
	return nil
}

// Keep saves the written rows. If a row was read and is not in the file, the last save stays, and the row is read
// again.
func (p *partial) Keep() (int64, error) {
	var err error
	switch {
	case p.broken, p.cursor().Count() != p.rows:
	case !p.inParts():
		err = p.save(p.table.Flush)
	case p.recent > 0:
		err = p.endPart()
	}
	return p.Cursor.Count(), err
}

// Finish renames the file. It first stores State.Done, so that -resume can finish after a kill between the steps.
func (p *partial) Finish() (err error) {
	p.Done = true
	switch {
	case p.inParts() && p.Parts > 0 && p.table == nil:
		err = p.store()
	case p.inParts() && p.Parts > 0:
		err = p.endPart()
	default:
		if p.table == nil { // Parquet without rows
			err = p.startTable()
		}
		if err == nil {
			err = p.save(p.table.Close)
		}
	}
	if err != nil {
		return err
	}
	p.Close()
	return p.complete(p.name)
}

// complete is the last step, when all rows are on disk. It can be repeated after a kill.
func (s state) complete(file string) (err error) {
	if s.Parts > 1 {
		err = remove(file) // the parts replace the old file
	} else {
		err = s.rename(file)
	}
	for _, name := range []string{partialOf(file), newCursorOf(file), cursorOf(file)} { // the files that kills have left; the cursor comes last
		if err == nil {
			err = remove(name)
		}
	}
	return err
}

func (s state) rename(file string) error {
	from := partialOf(file)
	if s.Parts == 1 {
		from = partOf(file, 1)
	}
	err := os.Rename(from, file)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, statErr := os.Lstat(file); statErr == nil && info.Size() == s.Size {
		return nil // it was renamed already
	}
	return fmt.Errorf("%s is gone; export again with -o %s", from, file)
}

// Close closes the file.
func (p *partial) Close() {
	if p.file != nil {
		_ = p.file.Close() // its rows are synced, or will be read again
		p.file = nil
	}
}
