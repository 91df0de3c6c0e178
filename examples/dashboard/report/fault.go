package report

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/webdelivery/webdelivery-go"
)

// Fault says in words why parts of a report are missing.
type Fault struct {
	Summary string   // what happened
	Advice  string   // what to do; "" if nothing is known
	Detail  string   // the error of the first part
	Parts   []string // which parts are missing
	Err     error    // the error of the first part
}

// addFault adds a part to the fault with the same summary, or adds a new fault.
func addFault(faults []Fault, part string, err error) []Fault {
	summary, advice := explain(err)
	i := slices.IndexFunc(faults, func(f Fault) bool { return f.Summary == summary })
	if i < 0 {
		return append(faults, Fault{summary, advice, err.Error(), []string{part}, err})
	}
	faults[i].Parts = append(faults[i].Parts, part)
	return faults
}

func responds(e *webdelivery.Error) string {
	return fmt.Sprintf("The service responds with %d %s", e.StatusCode, http.StatusText(e.StatusCode))
}

// explain returns what happened and what to do.
func explain(err error) (summary, advice string) {
	var answered *webdelivery.Error
	isError := errors.As(err, &answered)
	switch {
	case errors.Is(err, webdelivery.ErrUnauthorized):
		return "The service rejects the user name or the password",
			"Check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD, and start the dashboard again. The dashboard sent no more queries."
	case errors.Is(err, webdelivery.ErrForbidden):
		return "The user has no right to read these statistics", "Use a WEBDELIVERY_USERNAME that has this right."
	case errors.Is(err, webdelivery.ErrNotFound):
		return "The service does not have these statistics", "Check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER."
	case errors.Is(err, webdelivery.ErrBadRequest):
		return "The service rejects the query", "Check the names of the dimensions in the filter."
	case errors.Is(err, errPatience) || errors.Is(err, context.DeadlineExceeded):
		return "The service did not respond within 15 seconds", "Choose a shorter time range, or try again later."
	case errors.Is(err, webdelivery.ErrBadResponse) || errors.Is(err, webdelivery.ErrResponseTooLarge):
		return "The dashboard cannot read the response of the service", "Check WEBDELIVERY_BASE_URL."
	case isError && answered.StatusCode == 0:
		return "The service is unreachable", "Check WEBDELIVERY_BASE_URL, and that the service is running."
	case isError && answered.StatusCode >= http.StatusInternalServerError:
		return responds(answered), "Try again later."
	case isError:
		return responds(answered), ""
	default:
		return "The query failed", ""
	}
}
