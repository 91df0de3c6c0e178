package filelock

import (
	"errors"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32) // ERROR_SHARING_VIOLATION

// Open opens a file, which it creates if need be, until it is closed. It does not wait.
func Open(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	const nobodyElse = 0
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, nobodyElse, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, sharingViolation):
		return nil, ErrLocked
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	default:
		return os.NewFile(uintptr(handle), path), nil
	}
}
