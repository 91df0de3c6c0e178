package program

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file that only its owner can read. It writes under a temporary name in the same folder, and renames
// the file when it is complete. Until then, and if anything fails, the old file stays.
func Replace(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // does nothing after the rename
	defer file.Close()
	if err := write(file); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil { // without Sync, a crash could leave an empty file
		return err
	}
	return os.Rename(file.Name(), name)
}

// Special reports whether the name exists and is no regular file. Replace would replace the device or link by a file.
func Special(name string) bool {
	there, err := os.Lstat(name)
	return err == nil && !there.Mode().IsRegular()
}
