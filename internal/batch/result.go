package batch

import (
	"errors"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// uriResult is what is known about one URI of a request.
type uriResult struct {
	receipt  any               // from the accepted request; nil if none was accepted
	err      error             // it was refused, or its request or transaction failed
	outcome  transport.Outcome // of the failed request
	ended    bool              // the result is final
	doubtful bool              // an earlier request may have applied the URI although it was refused
}

// resultOf returns the result of a caller with these URIs. open is the error of URIs whose results are not final, or
// nil if there are none. waits reports whether the queue waits for transactions.
func resultOf(uris []URI, known map[URI]*uriResult, open error, waits bool) (result Result) {
	var causes []error
	texts := map[string]bool{}
	applied, notApplied := true, true // whether this is certain for all URIs
	for _, uri := range uris {
		u := known[uri]
		if u.receipt != nil {
			result.Receipt = u.receipt
		}
		// If the queue waits for transactions, it does not know how the transaction of a URI with an error ended.
		applied = applied && u.ended && (u.err == nil || u.outcome == transport.Applied && !waits)
		notApplied = notApplied && u.receipt == nil && u.err != nil && !u.doubtful && u.outcome == transport.NotApplied
		err := u.err
		if !u.ended {
			err = open
		}
		if err == nil {
			continue
		}
		result.Failed = append(result.Failed, uri)
		if text := err.Error(); !texts[text] {
			texts[text] = true
			causes = append(causes, err)
		}
	}
	if result.Err = errors.Join(causes...); len(causes) == 1 {
		result.Err = causes[0]
	}
	switch {
	case applied:
		result.Outcome = transport.Applied
	case notApplied:
		result.Outcome = transport.NotApplied
	}
	return result
}
