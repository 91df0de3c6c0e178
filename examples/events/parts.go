package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Nothing can be added to a Parquet file, so a Parquet export consists of parts. The part under way is FILE.partial; it
// gets the name of a part when it is whole and synced.

// inParts reports whether the format needs parts.
func (s state) inParts() bool { return s.Format == formatParquet }

const formatParquet = "parquet"

// partOf is the name of a part: events-00001.parquet of events.parquet.
func partOf(file string, number int) string {
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s-%05d%s", strings.TrimSuffix(file, ext), number, ext)
}

// patternOf is a pattern of a shell for the names of all parts.
func patternOf(file string) string {
	ext := filepath.Ext(file)
	return strings.TrimSuffix(file, ext) + "-?????" + ext
}

// endPart ends the part under way, and then stores the cursor.
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

// checkParts makes sure that all parts are there up to the cursor, and none behind it.
func (p *partial) checkParts() error {
	for number := 1; number <= p.Parts; number++ {
		name := partOf(p.name, number)
		info, err := os.Lstat(name)
		switch {
		case err != nil:
			return fmt.Errorf("%s belongs to %d parts, and one is missing: %w; export anew with -o %s", cursorOf(p.name), p.Parts, err, p.name)
		case number == p.Parts && info.Size() != p.Size:
			return fmt.Errorf("%s has %d bytes, and had %d; export anew with -o %s", name, info.Size(), p.Size, p.name)
		}
	}
	return remove(partOf(p.name, p.Parts+1)) // of a kill before its cursor was stored: its rows come again
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

// ownParts is the highest number of a part that an export left when it ended early: a kill may have come after the last
// part had its name, and before the cursor knew of it.
func ownParts(file string) int {
	if s, err := readState(file); err == nil && s.inParts() {
		return s.Parts + 1
	}
	return 0
}

// foreignPart returns the name of a part that is there and belongs to another export, one that is done. If there is none,
// it returns "".
func foreignPart(file string) string {
	own := map[string]bool{}
	for number := range ownParts(file) {
		own[filepath.Base(partOf(file, number+1))] = true
	}
	entries, _ := os.ReadDir(filepath.Dir(file)) // a folder that cannot be read is told when the file is created
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
