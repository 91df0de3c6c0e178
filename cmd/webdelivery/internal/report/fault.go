package report

import (
	"context"
	"errors"
	"slices"

	"github.com/webdelivery/webdelivery-go"
)

// fault says in words why parts are missing.
type fault struct {
	Summary string   // what happened
	Advice  string   // what to do
	Parts   []string // which parts are missing
	Err     error    // the error of the first part
}

// addFault adds a part to the fault with the same summary, or adds a new fault.
func addFault(faults []fault, part string, err error) []fault {
	summary, advice := explain(err)
	i := slices.IndexFunc(faults, func(f fault) bool { return f.Summary == summary })
	if i < 0 {
		return append(faults, fault{summary, advice, []string{part}, err})
	}
	faults[i].Parts = append(faults[i].Parts, part)
	return faults
}

// explain returns what happened and what to do. The error itself stands beside it.
func explain(err error) (summary, advice string) {
	switch {
	case errors.Is(err, webdelivery.ErrUnauthorized):
		return "The service rejects the user name or the password",
			"Check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD, and start the report again."
	case errors.Is(err, webdelivery.ErrForbidden):
		return "The user has no right to read these statistics", "Use a WEBDELIVERY_USERNAME that has this right."
	case errors.Is(err, webdelivery.ErrNotFound):
		return "The service does not have these statistics", "Check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER."
	case errors.Is(err, webdelivery.ErrBadRequest):
		return "The service rejects the query", "Check the dimensions in the filter; some statistics lack some of them."
	case errors.Is(err, context.DeadlineExceeded):
		return "The service did not respond within 15 seconds", "Choose a shorter time range, or try again later."
	case errors.Is(err, webdelivery.ErrServer):
		return "The service has failed", "Try again later."
	default:
		return "The query failed", "Check WEBDELIVERY_BASE_URL, and that the service is running."
	}
}
