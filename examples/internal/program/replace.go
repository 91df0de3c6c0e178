package program

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file, for its owner alone, under another name beside the one of that name, and gives it the name when
// it is whole. What was there before stays until then, and for good when anything fails.
func Replace(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // unless it has its name
	defer file.Close()
	if err := write(file); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil { // unsynced, a crash could leave the name on an empty file
		return err
	}
	return os.Rename(file.Name(), name)
}

// Special tells of what is there and is no regular file: Replace would put a file in the place of a device or link.
func Special(name string) bool {
	there, err := os.Lstat(name)
	return err == nil && !there.Mode().IsRegular()
}
