package webdelivery

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sentinels for errors.Is. The first group matches an [*Error] by the status of the reply, or by the code of its
// envelope where that is the graver of the two (service-interface section 7).
var (
	ErrBadRequest   = errors.New("webdelivery: bad request")    // 400
	ErrUnauthorized = errors.New("webdelivery: unauthorized")   // 401, and 403 of purges, transactions and logins
	ErrForbidden    = errors.New("webdelivery: forbidden")      // 403
	ErrNotFound     = errors.New("webdelivery: not found")      // 404
	ErrRateLimited  = errors.New("webdelivery: rate limited")   // 429, and 503 of a purge
	ErrServer       = errors.New("webdelivery: server fault")   // 500 and above
	ErrRedirect     = errors.New("webdelivery: redirected")     // 300 to 399: no redirect is followed
	ErrBadReply     = errors.New("webdelivery: unusable reply") // a reply that is not what the service document says

	// ErrResponseTooLarge means that the reply is longer than [WithMaxResponseBytes] allows.
	ErrResponseTooLarge = errors.New("webdelivery: response too large")
	// ErrInvalid means that the request was refused here, by an [*ValidationError]; nothing was sent.
	ErrInvalid = errors.New("webdelivery: invalid request")
)

// Outcome says what became of a write whose call ended in an error.
type Outcome int

const (
	// Unknown means that the service may have carried out the write, or not. The zero value.
	Unknown Outcome = iota
	// NotApplied means that the service certainly did not carry out the write.
	NotApplied
	// Applied means that the service carried out the write.
	Applied
)

// String gives "unknown", "not applied" or "applied".
func (o Outcome) String() string {
	switch o {
	case NotApplied:
		return "not applied"
	case Applied:
		return "applied"
	default:
		return "unknown"
	}
}

// OutcomeOf tells what became of the write that returned err. It is [Applied] for a nil error, and for a write that the
// service accepted in a reply that lacks what was wanted of it; [NotApplied] for one that never left the process or
// that the service refused, and for a call that only reads, except Wait: there it is [Unknown], the outcome of what was
// waited for; [Unknown] for all else, errors of other packages included.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Applied
	}
	var known interface{ outcomeOfWrite() Outcome }
	if errors.As(err, &known) {
		return known.outcomeOfWrite()
	}
	return Unknown
}

// Error is a call that failed on its way or that the service refused (service-interface section 7). It never holds a
// credential: Set-Cookie is taken out of Header, and the client's own password and token out of everything else. Of a
// refused login it keeps no words of the service.
type Error struct {
	StatusCode  int         // HTTP status of the last reply; 0 when no reply arrived
	Code        int         // code of the reply's envelope; 0 when it has none
	Method      string      // HTTP method of the request
	Path        string      // escaped path of the request, without its query
	Description string      // the service's own words, at most 64 KiB, or those of the status; of a login those of the status
	Body        []byte      // the first 64 KiB of the last reply; none of a login's, which may hold a session
	Header      http.Header // header of the last reply, up to 64 KiB; of Location only scheme and host
	Attempts    int         // attempts, the first included, and one that ended before anything was sent

	outcome    Outcome
	tooFast    bool  // a purge was refused as too fast (open point 8)
	authFailed bool  // the status means failed authentication (open point 6: 403 on purge and transactions)
	cause      error // what failed apart from the status: the connection, the context, the decoding
}

// Error gives method, path, status, description and cause on one line; what the service sent is quoted and clipped.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "webdelivery: %s %s", e.Method, e.Path)
	if e.StatusCode != 0 {
		fmt.Fprintf(&b, ": %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	}
	if e.Code != 0 && e.Code != e.StatusCode {
		fmt.Fprintf(&b, " (code %d)", e.Code)
	}
	if e.Description != "" && e.Description != http.StatusText(e.StatusCode) {
		b.WriteString(": " + printable(e.Description))
	}
	if e.cause != nil {
		b.WriteString(": " + printable(e.cause.Error()))
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	return b.String()
}

// Unwrap gives the cause: the context's error, the connection's, or one of the sentinels.
func (e *Error) Unwrap() error { return e.cause }

// Is matches the sentinels of this package by status.
func (e *Error) Is(target error) bool {
	switch status := max(e.StatusCode, e.Code); target {
	case ErrBadRequest:
		return status == http.StatusBadRequest
	case ErrUnauthorized:
		return status == http.StatusUnauthorized || e.authFailed
	case ErrForbidden:
		return status == http.StatusForbidden
	case ErrNotFound:
		return status == http.StatusNotFound
	case ErrRateLimited:
		return status == http.StatusTooManyRequests || e.tooFast
	case ErrServer:
		return status >= http.StatusInternalServerError
	case ErrRedirect:
		return status >= http.StatusMultipleChoices && status < http.StatusBadRequest
	default:
		return false
	}
}

// LogValue gives the facts without header and body, so that an Error is safe in any log.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("method", e.Method),
		slog.String("path", e.Path),
		slog.Int("status", e.StatusCode),
		slog.Int("attempts", e.Attempts),
		slog.String("outcome", e.outcome.String()),
	}
	if e.Description != "" {
		attrs = append(attrs, slog.String("description", printable(e.Description)))
	}
	if e.cause != nil {
		attrs = append(attrs, slog.String("cause", printable(e.cause.Error())))
	}
	return slog.GroupValue(attrs...)
}

func (e *Error) outcomeOfWrite() Outcome { return e.outcome }

// ValidationError is a request refused before it was sent: the service document says that it is invalid, or the SDK
// keeps its user from it, as a plan that removes too much. It matches [ErrInvalid], and its outcome is [NotApplied].
// Several of them come joined, a hundred at most; errors.As finds the first.
type ValidationError struct {
	Field  string // path of the field in the service's own names, for example uris[3].cache_key_modifier_regex
	Reason string // what is wrong with it
}

// Error gives field and reason on one line.
func (e *ValidationError) Error() string {
	return "webdelivery: invalid " + e.Field + ": " + printable(e.Reason)
}

// Is matches [ErrInvalid].
func (e *ValidationError) Is(target error) bool { return target == ErrInvalid }

// LogValue gives field and reason.
func (e *ValidationError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("field", e.Field), slog.String("reason", printable(e.Reason)))
}

func (e *ValidationError) outcomeOfWrite() Outcome { return NotApplied }

// invalid makes a ValidationError.
func invalid(field, format string, args ...any) *ValidationError {
	return &ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// maxProblems bounds how many problems one error lists; a list of 50,000 bad entries is told by its first hundred.
const maxProblems = 100

// problems gathers all that is wrong with a request into one error.
type problems struct {
	found     []error
	more      int
	unchecked int // values behind those that were found, see full
}

// full tells whether no more problems need to be found, with so many values left to check: a caller may pass millions.
func (p *problems) full(left int) bool {
	if len(p.found) < maxProblems {
		return false
	}
	p.unchecked = left
	return true
}

func (p *problems) add(field, format string, args ...any) {
	if len(p.found) == maxProblems {
		p.more++
		return
	}
	p.found = append(p.found, invalid(field, format, args...))
}

func (p *problems) err() error {
	switch {
	case len(p.found) == 0:
		return nil
	case len(p.found) == 1:
		return p.found[0]
	case p.unchecked > 0:
		return errors.Join(append(p.found, fmt.Errorf("the %d values after these were not checked", p.unchecked))...)
	case p.more > 0:
		return errors.Join(append(p.found, fmt.Errorf("and %d more of the kind", p.more))...)
	default:
		return errors.Join(p.found...)
	}
}

// TaskError is a task that ended with an error condition (service-interface section 2.1, error_info). The calls that
// led to it succeeded; what the task was to change may be changed in part, so its outcome is [Unknown].
type TaskError struct {
	Task *Task // the task as it was last read; its ErrorInfo is not nil
}

// Error gives the id of the task with type, message and details of its error_info, on one line.
func (e *TaskError) Error() string {
	info := cmp.Or(e.Task.ErrorInfo, &ErrorInfo{}) // a test of a user's may leave it out
	texts := []string{info.Message}
	for _, d := range info.Details {
		texts = append(texts, d.Message)
	}
	text := joinNonEmpty(": ", info.Type, joinNonEmpty("; ", texts...))
	return joinNonEmpty(": ", "webdelivery: task "+printable(e.Task.ID)+" failed", printable(text))
}

// LogValue gives id, operation and error_info of the task.
func (e *TaskError) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("task", printable(e.Task.ID)),
		slog.String("operation", printable(e.Task.Operation)),
		slog.String("error", e.Error()))
}

// TransactionError is a purge transaction that ended badly (service-interface section 2.3, open point 9). The calls
// that led to it succeeded; some of its URIs may be purged, so its outcome is [Unknown].
type TransactionError struct {
	Transaction *Transaction // the transaction as it was last read
}

// Error gives the id of the transaction with its status and descriptions, on one line.
func (e *TransactionError) Error() string {
	t := e.Transaction
	return fmt.Sprintf("webdelivery: transaction %d ended as %s", t.TransactionID,
		printable(joinNonEmpty(": ", t.TransactionStatus, t.TransactionStatusDescription, t.Description)))
}

// LogValue gives id and status of the transaction.
func (e *TransactionError) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("transaction_id", e.Transaction.TransactionID),
		slog.String("transaction_status", printable(e.Transaction.TransactionStatus)))
}

// IncompleteError is a statistics response with fewer rows than it should have: as many as match the query, up to its
// limit, or the default of 10, and up to the size of a top-K (service-interface sections 2.4 and 8). The rows before it
// are good. Got may also be below the limit while Total is far above it.
//
// All reads two responses: one for total_results, one for the rows. Both numbers are those of the second. If that has as
// many rows as its own total_results says, but fewer than the first one announced, Total is that of the first.
type IncompleteError struct {
	Got   int64 // rows in the response
	Total int64 // total_results of the response
}

// Error gives both numbers.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("webdelivery: %d rows arrived, and %d match", e.Got, e.Total)
}

func (e *IncompleteError) outcomeOfWrite() Outcome { return NotApplied }

// PartialError is a change of many entries that stopped on its way ([NetworkListsService.AddEntries]). Each entry that
// was to be sent is in one of its lists, in order. Its outcome is [NotApplied] when none was or may have been taken,
// else [Unknown].
type PartialError struct {
	Accepted    []string // the service has taken these
	NotAccepted []string // the service has not taken these
	Unknown     []string // the service may have taken these, or not
	Err         error    // what went wrong; Unwrap gives it
}

// newPartialError sorts entries of which those before at were accepted, and count from there failed with err.
func newPartialError(entries []string, at, count int, err error) *PartialError {
	e := &PartialError{Accepted: entries[:at], NotAccepted: entries[at:], Err: err}
	if OutcomeOf(err) != NotApplied {
		e.Unknown, e.NotAccepted = entries[at:at+count], entries[at+count:]
	}
	return e
}

// Error gives how many entries are in each list, and what went wrong.
func (e *PartialError) Error() string {
	return fmt.Sprintf("webdelivery: %d entries accepted, %d not, %d unknown: %v",
		len(e.Accepted), len(e.NotAccepted), len(e.Unknown), e.Err)
}

// Unwrap gives what went wrong.
func (e *PartialError) Unwrap() error { return e.Err }

// LogValue gives the numbers and what went wrong.
func (e *PartialError) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("accepted", len(e.Accepted)), slog.Int("not_accepted", len(e.NotAccepted)),
		slog.Int("unknown", len(e.Unknown)), slog.Any("error", e.Err))
}

// A change of which a part is done is neither applied nor not.
func (e *PartialError) outcomeOfWrite() Outcome {
	if len(e.Accepted)+len(e.Unknown) == 0 {
		return NotApplied
	}
	return Unknown
}

// EntriesLeftError means that a network list still has entries after [NetworkListsService.ClearEntries]. The service
// accepted the deletion, and some entries may be gone, so the outcome is [Unknown]. Repeat the call as long as Left
// becomes smaller. (Service-interface sections 2.6 and 8, open point 24.)
type EntriesLeftError struct {
	ListID string // UUID of the list
	Left   int64  // entries that were read afterwards, at least 1; 1 when the service gives no total
}

// Error gives the list and the number of entries.
func (e *EntriesLeftError) Error() string {
	return fmt.Sprintf("webdelivery: network list %s still has %d entries after the batch deletion; repeat it",
		printable(e.ListID), e.Left)
}

// LogValue gives the list and the number of entries.
func (e *EntriesLeftError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("networklist", printable(e.ListID)), slog.Int64("left", e.Left))
}

func (e *EntriesLeftError) outcomeOfWrite() Outcome { return Unknown }

// maxPrinted bounds how much of a foreign text one message repeats, in bytes.
const maxPrinted = 512

// printable makes a foreign text fit for one line of a log: clipped, and quoted when it holds anything that is not
// plain to see (a newline, a terminal's escape, a broken rune).
func printable(s string) string {
	if len(s) > maxPrinted {
		end := maxPrinted
		for end > maxPrinted-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "..." // what is broken stays: without it, two pieces of a secret may become one
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

func joinNonEmpty(sep string, parts ...string) string {
	kept := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, sep)
}
