package webdelivery

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Sentinels for errors.Is. The first group matches an [*Error] by the status of the reply, or by the code of its
// envelope where that is the graver of the two (service-interface section 7).
var (
	ErrBadRequest   = errors.New("webdelivery: bad request")  // 400
	ErrUnauthorized = transport.ErrUnauthorized               // 401, and 403 of purges, transactions and logins
	ErrForbidden    = errors.New("webdelivery: forbidden")    // 403
	ErrNotFound     = errors.New("webdelivery: not found")    // 404
	ErrRateLimited  = transport.ErrRateLimited                // 429, and 503 of a purge
	ErrServer       = errors.New("webdelivery: server fault") // 500 and above
	ErrRedirect     = errors.New("webdelivery: redirected")   // 300 to 399: no redirect is followed
	ErrBadReply     = transport.ErrBadReply                   // a reply that is not what the service document says

	// ErrResponseTooLarge means that the reply is longer than [WithMaxResponseBytes] allows.
	ErrResponseTooLarge = transport.ErrResponseTooLarge
	// ErrInvalid means that an argument or option is invalid and that the call has sent nothing: no error matches it once
	// the call has sent a request. It matches a [*ValidationError].
	ErrInvalid = errors.New("webdelivery: invalid request")
)

var sentinels = []error{
	ErrBadRequest, ErrUnauthorized, ErrForbidden, ErrNotFound, ErrRateLimited, ErrServer, ErrRedirect, ErrBadReply,
	ErrResponseTooLarge, ErrInvalid, ErrPlanStale, ErrPlanRefused, ErrTooManyRemovals, ErrQueueClosed, ErrRefusedTogether,
}

// ownError tells whether an error, without what it wraps, is one of this package. In what a context, a transport or a
// limiter of the user's returns, it says something of another call.
func ownError(err error) bool {
	switch err.(type) { //nolint:errorlint // what it wraps does not count
	case interface{ outcomeOfWrite() Outcome }, *TaskError, *TransactionError:
		return true
	default:
		return slices.Contains(sentinels, err)
	}
}

// Outcome says what became of a write whose call ended in an error.
type Outcome int

const (
	// OutcomeUnknown means that the service may have carried out the write, or not. The zero value.
	OutcomeUnknown Outcome = iota
	// OutcomeNotApplied means that the service certainly did not carry out the write.
	OutcomeNotApplied
	// OutcomeApplied means that the service carried out the write.
	OutcomeApplied
)

// String gives "unknown", "not applied" or "applied".
func (o Outcome) String() string {
	switch o {
	case OutcomeNotApplied:
		return "not applied"
	case OutcomeApplied:
		return "applied"
	default:
		return "unknown"
	}
}

// OutcomeOf tells what became of the write that returned err. It is [OutcomeApplied] for a nil error, and for a write
// that the service accepted in a reply that lacks what was wanted of it; [OutcomeNotApplied] for one that never left
// the process or that the service refused, and for a call that only reads, except Wait: there it is [OutcomeUnknown],
// the outcome of what was waited for; [OutcomeUnknown] for all else, errors of other packages included.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeApplied
	}
	var known interface{ outcomeOfWrite() Outcome }
	if errors.As(err, &known) {
		return known.outcomeOfWrite()
	}
	return OutcomeUnknown
}

// Error is a call that failed on its way or that the service refused (service-interface section 7). It never holds a
// credential: Set-Cookie is taken out of Header, and the client's own password and token out of everything else. Of a
// refused login it keeps no words of the service.
type Error struct {
	StatusCode  int         // HTTP status of the last response, or of the refusal that holds the call; 0 without either
	Code        int         // code of the reply's envelope; 0 when it has none
	Method      string      // HTTP method of the request
	Host        string      // host of the base URL, with its port unless that is the default: host[:port]
	Path        string      // escaped path of the request, without its query
	Description string      // the service's own words, at most 64 KiB, or those of the status; of a login those of the status
	Body        []byte      // the first 64 KiB of the last reply; none of a login's, which may hold a session
	Header      http.Header // header of the last reply, up to 64 KiB; of Location only scheme and host
	Attempts    int         // attempts, also one that ended before anything was sent, but not one that was held, see [BasicAuth]

	outcome    Outcome
	tooFast    bool  // a purge was refused as too fast (open point 8)
	authFailed bool  // the status means failed authentication (open point 6: 403 on purge and transactions)
	login      bool  // the status is that of a login for the call, and says nothing of what the call asks for
	cause      error // what failed apart from the status: the connection, the context, the decoding
}

// Error gives method, host, path, status, description and cause on one line; what the service sent is quoted and clipped.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "webdelivery: %s %s%s", e.Method, e.Host, e.Path)
	if e.StatusCode != 0 {
		fmt.Fprintf(&b, ": %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	}
	if e.Code != 0 && e.Code != e.StatusCode {
		fmt.Fprintf(&b, " (code %d)", e.Code)
	}
	if e.Description != "" && e.Description != http.StatusText(e.StatusCode) {
		b.WriteString(": " + redact.Line(e.Description))
	}
	if e.cause != nil {
		b.WriteString(": " + redact.Line(redact.Within(prefix, e.cause.Error())))
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	return b.String()
}

// Unwrap gives the cause: the context's error, the connection's, or one of the sentinels.
func (e *Error) Unwrap() error { return e.cause }

// markLogin makes e the error of a login for another call. refused: the service answered 4xx, and trying again at once
// would not help. Any of these but 408 and 429 is failed authentication.
func (e *Error) markLogin() (refused bool) {
	status := max(e.StatusCode, e.Code)
	refused = status >= http.StatusBadRequest && status < http.StatusInternalServerError
	passing := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
	e.login, e.authFailed = true, e.authFailed || refused && !passing
	return refused
}

// Is matches the sentinels of this package by status. If a login of [SessionAuth] failed, 400, 403 and 404 are about the
// login and not about what was asked for: the error matches ErrUnauthorized.
func (e *Error) Is(target error) bool {
	if e.login && (target == ErrBadRequest || target == ErrForbidden || target == ErrNotFound) {
		return false
	}
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
		slog.String("host", e.Host),
		slog.String("path", e.Path),
		slog.Int("status", e.StatusCode),
		slog.Int("attempts", e.Attempts),
		slog.String("outcome", e.outcome.String()),
	}
	if e.Description != "" {
		attrs = append(attrs, slog.String("description", redact.Line(e.Description)))
	}
	if e.cause != nil {
		attrs = append(attrs, slog.String("cause", redact.Line(e.cause.Error())))
	}
	return slog.GroupValue(attrs...)
}

func (e *Error) outcomeOfWrite() Outcome { return e.outcome }

// ValidationError is a call that was refused before it sent anything, because the service document says that it is
// invalid or the SDK cannot carry it out. It matches [ErrInvalid], and its outcome is [OutcomeNotApplied]. Several of them
// come joined, a hundred at most; errors.As finds the first. What a call finds out from a response is another error:
// [ErrBadReply] for what the service sent, and [*PlanError] for a plan that the list or its guards do not allow.
type ValidationError struct {
	Field  string // path of the field in the service's own names, for example uris[3].cache_key_modifier_regex
	Reason string // what is wrong with it
}

// Error gives field and reason on one line.
func (e *ValidationError) Error() string {
	return prefix + "invalid " + e.Field + ": " + redact.Line(redact.Within(prefix, e.Reason))
}

// Is matches [ErrInvalid].
func (e *ValidationError) Is(target error) bool { return target == ErrInvalid }

// LogValue gives field and reason.
func (e *ValidationError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("field", e.Field), slog.String("reason", redact.Line(e.Reason)))
}

func (e *ValidationError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// invalid makes a ValidationError.
func invalid(field, format string, args ...any) *ValidationError {
	return &ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// prefix begins the text of every error of this package.
const prefix = "webdelivery: "

// changeError is the error of a change of many parts, with what became of the whole.
type changeError struct {
	err     error
	outcome Outcome
}

func (e *changeError) Error() string           { return prefix + redact.Within(prefix, e.err.Error()) }
func (e *changeError) Unwrap() error           { return e.err }
func (e *changeError) outcomeOfWrite() Outcome { return e.outcome }

// maxProblems bounds how many problems one error lists; a list of 50,000 bad entries is told by its first hundred.
const maxProblems = 100

// problems gathers all that is wrong with a request into one error.
type problems struct {
	as        func(*ValidationError) error // makes the errors, when a request has been sent; nil: they stay
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
	wrong := invalid(field, format, args...)
	if p.as != nil {
		p.found = append(p.found, p.as(wrong))
		return
	}
	p.found = append(p.found, wrong)
}

// addBelow0 refuses a limit below 0, whose zero value is a default.
func (p *problems) addBelow0(field string, limit int64) {
	if limit < 0 {
		p.add(field, "%d is below 0; use 0 for the default", limit)
	}
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

func joinNonEmpty(sep string, parts ...string) string {
	kept := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, sep)
}

// checkYear refuses times, in UTC, whose year does not have the four digits of the service's patterns.
func checkYear(bad *problems, field string, at time.Time) {
	if year := at.Year(); year < 1 || year > 9999 {
		bad.add(field, "is in the year %d, which the service's format cannot express", year)
	}
}
