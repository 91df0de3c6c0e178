package webdelivery

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Sentinels for errors.Is. The first group matches an [*Error] by the HTTP status of the response, or by the code in
// its body if that is higher.
var (
	ErrBadRequest   = errors.New("webdelivery: bad request")  // 400
	ErrUnauthorized = transport.ErrUnauthorized               // 401, and 403 to purges, transactions and logins
	ErrForbidden    = errors.New("webdelivery: forbidden")    // 403
	ErrNotFound     = errors.New("webdelivery: not found")    // 404
	ErrRateLimited  = transport.ErrRateLimited                // 429, and 503 to a purge
	ErrServer       = errors.New("webdelivery: server fault") // 500 and above
	ErrBadResponse  = transport.ErrBadResponse                // not what the service document says; also 300 to 399, as no redirect is followed

	// ErrResponseTooLarge means that the response is longer than [WithMaxResponseBytes] allows.
	ErrResponseTooLarge = transport.ErrResponseTooLarge
	// ErrInvalid means that an argument or option is invalid and that the call has sent nothing. It matches a
	// [*ValidationError]. Once a call has sent a request, none of its errors matches ErrInvalid.
	ErrInvalid = errors.New("webdelivery: invalid request")
)

// Outcome says whether the service carried out a write whose call returned an error.
type Outcome int

const ( // in the order of package outcomes
	// OutcomeUnknown means that the service may have carried out the write. It is the zero value.
	OutcomeUnknown Outcome = iota
	// OutcomeNotApplied means that the service certainly did not carry out the write.
	OutcomeNotApplied
	// OutcomeApplied means that the service carried out the write.
	OutcomeApplied
)

// String returns "unknown", "not applied" or "applied".
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

// OutcomeOf returns the outcome of the write that returned err:
//
//   - [OutcomeApplied] if err is nil, or if the service accepted the write but its response lacked expected fields
//   - [OutcomeNotApplied] if the write was never sent or the service refused it, and for calls that only read
//   - [OutcomeUnknown] otherwise, including errors of other packages and of a Wait, whose task or purge goes on
//
// Joined errors have the outcome that they agree on, and OutcomeUnknown if they disagree. Errors of other packages among
// them do not count.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeApplied
	}
	outcome, _ := outcomeWithin(err)
	return outcome
}

// outcomeWithin returns the outcome of err or of the errors that it wraps, and whether any of them has one.
func outcomeWithin(err error) (outcome Outcome, found bool) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself, because errors.As stops at the first
	case interface{ outcomeOfWrite() Outcome }:
		return e.outcomeOfWrite(), true
	case interface{ Unwrap() error }:
		return outcomeWithin(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, member := range e.Unwrap() {
			switch o, has := outcomeWithin(member); {
			case found && has && o != outcome:
				return OutcomeUnknown, true
			case has:
				outcome, found = o, true
			}
		}
	}
	return outcome, found
}

// Error is a call that failed or that the service rejected. It never contains a credential: passwords and tokens of
// the client are removed everywhere. Of a refused login it has only the status, some headers and the request id.
// (Section 7.)
type Error struct {
	StatusCode  int         // HTTP status of the last response, or of the refused login; 0 if there is none
	Code        int         // code in the body of the response; 0 if there is none
	Method      string      // HTTP method of the request
	Host        string      // host of the base URL, with the port if it is not the default: host[:port]
	Path        string      // escaped path of the request, without its query
	Description string      // the service's own words, at most 64 KiB; the text of the status if there are none, and for a login
	Body        []byte      // first 64 KiB of the last response; nil for a login, whose response may contain a session
	Header      http.Header // header of the last response, without credentials; Location only has its scheme and host
	RequestID   string      // X-Request-Id or X-Correlation-Id of the last response, on one line, cut at 128 bytes; "" if there is none
	Attempts    int         // attempts, including those that sent nothing

	outcome    Outcome
	tooFast    bool   // the service refused a purge as too fast (open point 8)
	authFailed bool   // the status means failed authentication (open point 6: 403 on purge and transactions)
	login      bool   // the status is that of a login for the call, not of the call itself
	hint       string // what to do about a 404; "" means the usual
	cause      error  // what failed besides the status: the connection, the context, the decoding
}

// Error returns method, host, path, status, description and cause on one line. The service's words are cut, and quoted
// if they contain unprintable characters.
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
		b.WriteString(": " + redact.Line(within(e.Description)))
	}
	if e.cause != nil {
		b.WriteString(": " + redact.Line(within(e.cause.Error())))
	}
	if e.status() == http.StatusNotFound {
		b.WriteString("; " + cmp.Or(e.hint, "check the id, the customer and the base URL"))
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	text := b.String()
	if id := " [request " + e.RequestID + "]"; e.RequestID != "" && !strings.Contains(text, id) { // the login that failed names it
		text += id
	}
	return text
}

// status decides what the error means.
func (e *Error) status() int { return max(e.StatusCode, e.Code) }

func (e *Error) redirected() bool {
	return e.status() >= http.StatusMultipleChoices && e.status() < http.StatusBadRequest
}

// Unwrap returns the cause: the error of the context or the connection, or a sentinel.
func (e *Error) Unwrap() error { return e.cause }

// markLogin turns e into the error of a login for another call. refused means that the service answered 3xx or 4xx, so
// an immediate retry would not help. A 4xx other than 408 and 429 counts as failed authentication.
func (e *Error) markLogin() (refused bool) {
	status := e.status()
	e.login, e.authFailed = true, e.authFailed || transport.Final(status)
	return status >= http.StatusMultipleChoices && status < http.StatusInternalServerError
}

// Is matches the sentinels of this package by status. If a login of [SessionAuth] failed, 400, 403 and 404 are about
// the login and not the call, so the error matches [ErrUnauthorized] instead.
func (e *Error) Is(target error) bool {
	if e.login && (target == ErrBadRequest || target == ErrForbidden || target == ErrNotFound) {
		return false
	}
	switch status := e.status(); target {
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
	case ErrBadResponse:
		return e.redirected()
	default:
		return false
	}
}

func (e *Error) outcomeOfWrite() Outcome { return e.outcome }

// ValidationError is a call that the SDK refused before sending anything, because an argument is invalid. It matches
// [ErrInvalid], and its outcome is [OutcomeNotApplied]. Up to 100 of them are joined, on one line: errors.As finds the
// first, and Unwrap() []error of the returned error finds all.
type ValidationError struct {
	Field  string // path of the field in the service's own names, for example uris[3].cache_key_modifier_regex
	Reason string // what is wrong with it
}

// Error returns field and reason on one line.
func (e *ValidationError) Error() string {
	return prefix + "invalid " + e.Field + ": " + redact.Line(within(e.Reason))
}

// Index returns the index in Field, such as 3 for uris[3].uri_pattern, and whether there is one.
func (e *ValidationError) Index() (index int, ok bool) {
	_, after, _ := strings.Cut(e.Field, "[")
	digits, _, _ := strings.Cut(after, "]")
	index, err := strconv.Atoi(digits)
	return index, err == nil
}

// Is matches [ErrInvalid].
func (e *ValidationError) Is(target error) bool { return target == ErrInvalid }

func (e *ValidationError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

func invalid(field, format string, args ...any) *ValidationError {
	return &ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// prefix starts the text of every error of this package.
const prefix = "webdelivery: "

// within returns the text of an error for use within the text of another one, which already has the prefix.
func within(text string) string {
	text = strings.TrimPrefix(text, prefix)
	return strings.NewReplacer(": "+prefix, ": ", "; "+prefix, "; ", "("+prefix, "(", ", "+prefix, ", ").Replace(text)
}

// joinedErrors are several errors on one line, because errors become log lines.
type joinedErrors struct{ all []error }

// join ignores nil. It returns nil for no error, a single error as it is, and otherwise a [joinedErrors].
func join(errs ...error) error {
	switch errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	default:
		return &joinedErrors{errs}
	}
}

func (e *joinedErrors) Error() string {
	texts := make([]string, len(e.all))
	for i, err := range e.all {
		if texts[i] = err.Error(); i > 0 {
			texts[i] = within(texts[i])
		}
	}
	return strings.Join(texts, "; ")
}

func (e *joinedErrors) Unwrap() []error { return e.all }

// outcomeError is the error of a change in several parts, with the outcome of the whole change.
type outcomeError struct {
	err     error
	outcome Outcome
}

func (e *outcomeError) Error() string           { return prefix + within(e.err.Error()) }
func (e *outcomeError) Unwrap() error           { return e.err }
func (e *outcomeError) outcomeOfWrite() Outcome { return e.outcome }

// foreignError is an error of the user's code. Its text is on one line and contains no secret of the client.
type foreignError struct{ error }

func (e *foreignError) Error() string { return redact.Line(e.error.Error()) }
func (e *foreignError) Unwrap() error { return e.error }

func (c *conn) foreign(err error) error { return &foreignError{c.secrets.Error(err)} }

// maxProblems limits how many problems one error lists, for example for a list of 50,000 bad entries.
const maxProblems = 100

// problems collects everything that is wrong with a request into one error.
type problems struct {
	as        func(*ValidationError) error // converts the errors if a request has been sent; nil: no conversion
	found     []error
	more      int
	unchecked int // values after the last checked one, see full
}

// full reports whether enough problems were found. The other left values then stay unchecked: a caller may pass
// millions.
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

func (p *problems) addBelow0(field string, limit int64) {
	if limit < 0 {
		p.add(field, "%d is below 0; use 0 for the default", limit)
	}
}

func (p *problems) err() error {
	switch {
	case p.unchecked > 0:
		return join(append(p.found, fmt.Errorf("the %d values after these were not checked", p.unchecked))...)
	case p.more > 0:
		return join(append(p.found, fmt.Errorf("and %d more problems", p.more))...)
	default:
		return join(p.found...)
	}
}

func joinNonEmpty(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), sep)
}

// checkYear refuses times whose year in UTC does not have the four digits of the service's patterns.
func checkYear(bad *problems, field string, at time.Time) {
	if year := at.Year(); year < 1 || year > 9999 {
		bad.add(field, "is in the year %d, which the service's format cannot express", year)
	}
}

// counted returns a number with its noun.
func counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// firstOf joins the first five texts, and says how many more there are.
func firstOf(texts []string, sep string) string {
	const shown = 5
	if len(texts) <= shown {
		return strings.Join(texts, sep)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:shown], sep), len(texts)-shown)
}

// asValidation turns an *address.Error into a *ValidationError with the same field and reason. It returns other
// errors unchanged.
func asValidation(err error) error {
	if e, ok := errors.AsType[*address.Error](err); ok {
		return &ValidationError{Field: e.Field, Reason: e.Reason}
	}
	return err
}
