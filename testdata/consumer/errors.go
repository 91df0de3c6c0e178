package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// explain tells what a program's user should know of an error, by what it is.
func explain(err error) string {
	for _, sentinel := range []error{
		webdelivery.ErrBadRequest, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, webdelivery.ErrNotFound,
		webdelivery.ErrRateLimited, webdelivery.ErrServer, webdelivery.ErrInvalid, webdelivery.ErrBadReply,
		webdelivery.ErrRedirect, webdelivery.ErrResponseTooLarge, webdelivery.ErrQueueClosed, webdelivery.ErrRefusedTogether,
		webdelivery.ErrPlanStale, webdelivery.ErrPlanRefused,
	} {
		if errors.Is(err, sentinel) {
			fmt.Println(sentinel)
		}
	}
	var outcome webdelivery.Outcome = webdelivery.OutcomeOf(err)
	switch outcome {
	case webdelivery.OutcomeNotApplied, webdelivery.OutcomeApplied, webdelivery.OutcomeUnknown:
		fmt.Println(outcome.String())
	}
	for _, look := range []func(error) string{ofFleet, ofCalls, ofPlans, ofWaits, ofReading, ofLimits, wrong} {
		if text := look(err); text != "" {
			return text
		}
	}
	return err.Error()
}

// ofCalls explains what was refused, by the SDK or by the service.
func ofCalls(err error) string {
	var (
		call    *webdelivery.Error
		invalid *webdelivery.ValidationError
		partial *webdelivery.PartialError
		queue   *webdelivery.QueueError
	)
	switch {
	case errors.As(err, &queue):
		var uris []webdelivery.PurgeURI = queue.URIs
		return fmt.Sprint(queue.Error(), uris, queue.Err, queue.Unwrap())
	case errors.As(err, &partial):
		return fmt.Sprint(partial.Error(), partial.Accepted, partial.NotAccepted, partial.Unknown,
			partial.Err, partial.Unwrap())
	case errors.As(err, &invalid):
		return fmt.Sprint(invalid.Error(), invalid.Field, invalid.Reason,
			invalid.Is(webdelivery.ErrInvalid))
	case errors.As(err, &call):
		return logged(call.LogValue()) + fmt.Sprint(call.Error(), call.StatusCode, call.Code, call.Method, call.Host, call.Path,
			call.Description, call.Body, call.Header, call.Attempts, call.Is(webdelivery.ErrServer), call.Unwrap())
	}
	return ""
}

// ofPlans explains why a list stays as it is.
func ofPlans(err error) string {
	var refused *webdelivery.PlanError
	if errors.As(err, &refused) {
		return fmt.Sprint(refused.Error(), refused.Field, refused.Reason, refused.Plan,
			refused.Is(webdelivery.ErrPlanRefused))
	}
	return ""
}

// ofWaits explains what the service began and did not finish.
func ofWaits(err error) string {
	var (
		task        *webdelivery.TaskError
		transaction *webdelivery.TransactionError
		left        *webdelivery.EntriesLeftError
	)
	switch {
	case errors.As(err, &left):
		return fmt.Sprint(left.Error(), left.ListID, left.Left)
	case errors.As(err, &task):
		return task.Error() + task.Task.ID
	case errors.As(err, &transaction):
		return transaction.Error() + transaction.Transaction.TransactionStatus
	}
	return ""
}

// ofReading explains why not all came, or not as it should.
func ofReading(err error) string {
	var (
		pagination *webdelivery.PaginationError
		incomplete *webdelivery.IncompleteError
		scan       *webdelivery.ScanError
		ambiguous  *webdelivery.AmbiguousNameError
	)
	switch {
	case errors.As(err, &ambiguous):
		return fmt.Sprint(ambiguous.Error(), ambiguous.Name, ambiguous.IDs)
	case errors.As(err, &pagination):
		return fmt.Sprint(pagination.Error(), pagination.Path, pagination.Page, pagination.Reason)
	case errors.As(err, &incomplete):
		return fmt.Sprint(incomplete.Error(), incomplete.Got, incomplete.Total)
	case errors.As(err, &scan):
		return fmt.Sprint(scan.Error(), scan.Row, scan.Column, scan.Field, scan.Type, scan.Value, scan.Err, scan.Unwrap())
	}
	return ""
}

// ofLimits explains why redislimit gave no permit.
func ofLimits(err error) string {
	var unavailable *redislimit.UnavailableError
	if errors.As(err, &unavailable) {
		return fmt.Sprint(unavailable.Error(), unavailable.Unwrap(), errors.Is(err, redis.ErrClosed))
	}
	return ""
}

func logged(value slog.Value) string { return value.Kind().String() + ": " }
