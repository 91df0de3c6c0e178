package batch

import (
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// uriResult is what is known about one URI of a request.
type uriResult struct {
	receipt  any              // from the accepted request; nil if none was accepted
	err      error            // it was refused, or its request or transaction failed
	outcome  outcomes.Outcome // of the failed request
	ended    bool             // the result is final
	doubtful bool             // an attempt that failed may have applied the URI
	wanted   int              // callers that wait for it
	sending  *part            // the attempt under way; nil if there is none
}

// failure returns the failure of a URI; its Err is nil if there is none. open is the error of a URI without a result.
// waits reports whether the queue waits for transactions, so that an accepted URI may still fail.
func (u *uriResult) failure(uri URI, open error, waits bool) Failure {
	f := Failure{uri, u.receipt, u.err, u.outcome}
	switch {
	case !u.ended && u.receipt == nil && u.sending == nil && !u.doubtful: // it was refused together with others
		f.Err, f.Outcome = open, outcomes.NotApplied
	case !u.ended:
		f.Err, f.Outcome = open, outcomes.Unknown
	case u.receipt != nil, u.doubtful, waits && u.outcome == outcomes.Applied:
		f.Outcome = outcomes.Unknown
	}
	return f
}

// resultOf returns the result of a caller with these URIs. open is the error of URIs whose results are not final, or
// nil if there are none.
func resultOf(uris []URI, known map[URI]*uriResult, open error, waits bool) (result Result) {
	applied, notApplied := true, true // whether this is certain for all URIs
	for _, uri := range uris {
		u := known[uri]
		f := u.failure(uri, open, waits)
		if u.receipt != nil && !slices.Contains(result.Receipts, u.receipt) {
			result.Receipts = append(result.Receipts, u.receipt)
		}
		if f.Err != nil {
			result.Failures = append(result.Failures, f)
		}
		applied = applied && (f.Err == nil || f.Outcome == outcomes.Applied)
		notApplied = notApplied && f.Err != nil && f.Outcome == outcomes.NotApplied
	}
	switch {
	case applied:
		result.Outcome = outcomes.Applied
	case notApplied:
		result.Outcome = outcomes.NotApplied
	}
	return result
}
