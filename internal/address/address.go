// Package address builds and checks every address that a request can go to.
//
// Two rules hold. An id is one escaped element of a path, so it cannot change where a request goes. An address that the
// service sent never leads to another origin, because only the origin of the base URL may receive the credentials.
//
// The package knows URLs and host names. It must not know requests, credentials or the SDK. Its entry points are
// [Parse], [Expand], [Base.Resolve] and [Base.URL].
package address

import "fmt"

// Error reports what is wrong with an address or an id. An Error about the base URL shows no part of it: if the base
// URL is misspelled, any part may hold a password.
type Error struct {
	Field  string // the parameter, member or placeholder that holds the address or the id
	Reason string // what is wrong with it; may quote bytes of an address that the service sent
}

// Error returns the field and the reason.
func (e *Error) Error() string { return "invalid " + e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) *Error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}
