// Package address makes and checks every address that a request can go to.
//
// Two rules hold. An id is one escaped element of a path, so it cannot change where a request goes. An address that the
// service sent never leads to another origin, because credentials belong to the origin of the base URL alone.
//
// The package knows URLs and the names of hosts. It must not know requests, credentials and the SDK. Its entry points are
// [Parse], [Expand], [Base.Resolve] and [Base.URL].
package address

import "fmt"

// Error reports what is wrong with an address or an id. No Error about the base URL repeats a part of it: in a base URL
// that is spelled wrong, a password may stand in any part.
type Error struct {
	Field  string // the parameter, member or placeholder that holds the address or the id
	Reason string // what is wrong with it; may repeat bytes of an address as the service sent them
}

// Error returns field and reason.
func (e *Error) Error() string { return "invalid " + e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) *Error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}
