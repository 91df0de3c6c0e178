package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Replace writes a file that only its owner can read. It writes under a temporary name in the same folder, and renames
// the file when it is complete. Until then, and if anything fails, the old file stays. An error names the file, and not
// the temporary one.
func Replace(name string, write func(io.Writer) error) error {
	return Unwritten(name, replace(name, write))
}

func replace(name string, write func(io.Writer) error) error {
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

// Unwritten returns the error of a program that could not write the file that its user named. The cause may name a
// file that the program created beside it. If the cause is the folder, Unwritten adds what to do.
func Unwritten(name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path) && beside(name, path.Path):
		err = path.Err
	case errors.As(err, &link) && beside(name, link.Old):
		err = link.Err
	default:
		return err
	}
	err = fmt.Errorf("%s cannot be written: %w", name, err)
	for _, folder := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.EROFS} {
		if errors.Is(err, folder) {
			return Advise(err, "name a file in a folder that exists and that you may write to")
		}
	}
	return err
}

func beside(name, other string) bool {
	return filepath.Dir(name) == filepath.Dir(other) && strings.Contains(filepath.Base(other), filepath.Base(name))
}

// Special reports whether the name exists and is not a regular file. Replace would replace the device or link with a
// file.
func Special(name string) bool {
	there, err := os.Lstat(name)
	return err == nil && !there.Mode().IsRegular()
}
