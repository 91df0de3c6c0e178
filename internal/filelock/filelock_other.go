//go:build !windows && (!unix || solaris || aix)

package filelock

import (
	"errors"
	"os"
)

// Open returns an error that matches [errors.ErrUnsupported]: package syscall has no lock for this system.
func Open(path string) (*os.File, error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}
