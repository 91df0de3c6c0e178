package webdelivery

import "slices"

// This file knows every error of the package. It is apart from errors.go, so that the other files do not depend on
// all of them.

var sentinels = []error{
	ErrBadRequest, ErrUnauthorized, ErrForbidden, ErrNotFound, ErrRateLimited, ErrServer, ErrRedirect, ErrBadReply,
	ErrResponseTooLarge, ErrInvalid, ErrPlanStale, ErrPlanRefused, ErrTooManyRemovals, ErrQueueClosed, ErrRefusedTogether,
}

// ownError reports whether err itself, not an error that it wraps, is one of this package. A context, transport or
// limiter of the user may return an error of another call.
func ownError(err error) bool {
	switch err.(type) { //nolint:errorlint // what it wraps does not count
	case interface{ outcomeOfWrite() Outcome }, *TaskError, *TransactionError:
		return true
	default:
		return slices.Contains(sentinels, err)
	}
}
