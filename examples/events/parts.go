package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Parquet file cannot be continued, so a Parquet export has parts. The incomplete part is FILE.partial; it gets the
// name of a part when it is complete and synced.

// inParts reports whether the format needs parts.
func (s state) inParts() bool { return s.Format == formatParquet }

const formatParquet = "parquet"

// partOf is the name of a part: events-00001.parquet of events.parquet.
func partOf(file string, number int) string {
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s-%05d%s", strings.TrimSuffix(file, ext), number, ext)
}

// patternOf is a shell pattern for the names of all parts.
func patternOf(file string) string {
	ext := filepath.Ext(file)
	return strings.TrimSuffix(file, ext) + "-?????" + ext
}

// endPart completes the current part, and then stores the cursor.
func (p *partial) endPart() error {
	if err := p.sync(p.table.Close); err != nil {
		return err
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	p.file, p.table = nil, nil
	if err := os.Rename(partialOf(p.name), partOf(p.name, p.Parts+1)); err != nil {
		return err
	}
	p.Parts++
	return p.store()
}

// checkParts checks that all parts up to the cursor exist. It removes a part after the cursor.
func (p *partial) checkParts() error {
	for number := 1; number <= p.Parts; number++ {
		name := partOf(p.name, number)
		info, err := os.Lstat(name)
		switch {
		case err != nil:
			return fmt.Errorf("%s belongs to %d parts, and one is missing: %w; export again with -o %s", cursorOf(p.name), p.Parts, err, p.name)
		case number == p.Parts && info.Size() != p.Size:
			return fmt.Errorf("%s has %d bytes, and had %d; export again with -o %s", name, info.Size(), p.Size, p.name)
		}
	}
	return remove(partOf(p.name, p.Parts+1)) // a kill came before its cursor was stored: its rows are read again
}

// removeParts removes the parts of an export that ended early, and its cursor last.
func removeParts(file string) error {
	for number := ownParts(file); number > 0; number-- {
		if err := remove(partOf(file, number)); err != nil {
			return err
		}
	}
	return remove(cursorOf(file))
}

// ownParts returns the highest number of a part that an export left when it ended early. A kill may have come between
// the rename of the last part and the store of its cursor.
func ownParts(file string) int {
	if s, err := readState(file); err == nil && s.inParts() {
		return s.Parts + 1
	}
	return 0
}

// foreignPart returns the name of a part that belongs to another export, which is complete. If there is none, it
// returns "".
func foreignPart(file string) string {
	own := map[string]bool{}
	for number := range ownParts(file) {
		own[filepath.Base(partOf(file, number+1))] = true
	}
	entries, _ := os.ReadDir(filepath.Dir(file)) // the creation of the file reports a folder that cannot be read
	for _, entry := range entries {
		if isPart(filepath.Base(file), entry.Name()) && !own[entry.Name()] {
			return filepath.Join(filepath.Dir(file), entry.Name())
		}
	}
	return ""
}

// isPart reports whether a name is that of a part of a file in the same folder.
func isPart(file, name string) bool {
	var number int
	ext := filepath.Ext(file)
	rest, found := strings.CutPrefix(name, strings.TrimSuffix(file, ext)+"-")
	if !found {
		return false
	}
	_, err := fmt.Sscanf(rest, "%05d", &number)
	return err == nil && partOf(file, number) == name
}
