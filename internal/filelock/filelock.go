// Package filelock opens a file for one process at a time. The lock ends with the process, however that ends.
package filelock

import "errors"

// ErrLocked means that another process, or another part of this one, has the file open.
var ErrLocked = errors.New("the file is open elsewhere")
