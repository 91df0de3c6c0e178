package webdelivery

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Option changes how a client works.
type Option func(*settings) error

// configure applies options of any kind.
func configure[T any, O ~func(*T) error](to *T, options []O) error {
	var errs []error
	for i, option := range options {
		if option == nil {
			errs = append(errs, invalid(fmt.Sprintf("options[%d]", i), "is nil; remove it"))
		} else {
			errs = append(errs, option(to))
		}
	}
	return join(errs...)
}

// settings holds the values of all options.
type settings struct {
	next           http.RoundTripper // sends the requests
	middlewares    []func(http.RoundTripper) http.RoundTripper
	attemptTimeout time.Duration
	idleTimeout    time.Duration
	logger         *slog.Logger
	userAgent      string
	retry          RetryPolicy
	limiter        func(customer string) *transport.Limiter // nil: the default
	dialect        Dialect
	maxBody        int64
	plainHTTP      bool
}

// WithHTTPClient sends requests through the Transport of client, for a proxy or a client certificate; a nil Transport
// means http.DefaultTransport. A Timeout above 0 limits one attempt, like [WithAttemptTimeout]. The SDK ignores the Jar
// and CheckRedirect of client. By default, a client has its own transport, which uses HTTP/2 if the server supports it,
// the proxy of the environment, and up to 128 idle connections.
//
// If your Transport sends its own requests, for example for a token, do not give them the context of the SDK's
// request, which takes their connections for its own.
func WithHTTPClient(client *http.Client) Option {
	return func(s *settings) error {
		if client == nil {
			return invalid("WithHTTPClient", "is nil")
		}
		s.next = cmp.Or(client.Transport, http.DefaultTransport)
		if client.Timeout < 0 {
			return invalid("WithHTTPClient", "its Timeout %v is below 0", client.Timeout)
		}
		if client.Timeout > 0 {
			s.attemptTimeout = client.Timeout
		}
		return nil
	}
}

// WithMiddleware wraps the transport of the client, or that of [WithHTTPClient], so that it sees each request of the SDK,
// logins and retries included; [OperationFromContext] says which call sends it. Given several times, the first one is
// outermost. Middleware sees credentials. It must call the next RoundTripper at most once, with a context made from that
// of the request: two requests would be one attempt to limits and retries.
func WithMiddleware(wrap func(next http.RoundTripper) http.RoundTripper) Option {
	return func(s *settings) error {
		if wrap == nil {
			return invalid("WithMiddleware", "is nil")
		}
		s.middlewares = append(s.middlewares, wrap)
		return nil
	}
}

// WithAttemptTimeout limits one attempt: connection, request, and the whole response. For a purge, the time starts with
// its permit. Default 30 s.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return invalid("WithAttemptTimeout", "%v is not above 0", d)
		}
		s.attemptTimeout = d
		return nil
	}
}

// WithIdleTimeout limits how long a streamed response may stall. Default 60 s.
func WithIdleTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return invalid("WithIdleTimeout", "%v is not above 0", d)
		}
		s.idleTimeout = d
		return nil
	}
}

// WithLogger logs each attempt at Debug, each retry at Warn, and at Warn what deserves attention, such as
// [StatsFamily.Warnings]. The attributes of an attempt are operation (as in [OperationFromContext]), method, path
// (without query), status, duration, attempt, wait (for a permit), bytes, request_id and error; those of a retry
// operation, method, path, attempt, status, wait and error; others have a warning. No body, query or credential is
// logged; the [guarantees] say what of headers. Default: no log.
//
// The Handler gets the context of the call, which waits for it: it must return soon and not call the same client.
//
// [guarantees]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/guarantees.md#secrets
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil {
			return invalid("WithLogger", "is nil")
		}
		s.logger = logger
		return nil
	}
}

// WithUserAgent sets the User-Agent header. Default "webdelivery-go/" and [Version].
func WithUserAgent(userAgent string) Option {
	return func(s *settings) error {
		if strings.TrimSpace(userAgent) == "" || strings.IndexFunc(userAgent, address.IsControl) >= 0 {
			return invalid("WithUserAgent", "%q is empty or contains a control character", userAgent)
		}
		s.userAgent = userAgent
		return nil
	}
}

// WithRetry sets how often and for how long calls are retried. Default: the zero [RetryPolicy], 4 attempts.
func WithRetry(policy RetryPolicy) Option {
	return func(s *settings) error {
		var err error
		s.retry, err = policy.withDefaults()
		return err
	}
}

// WithDialect sets spellings of requests that the service document leaves open. Default: the zero [Dialect].
func WithDialect(dialect Dialect) Option {
	return func(s *settings) error {
		var err error
		if s.dialect, err = dialect.withDefaults(); err != nil {
			return &outcomeError{fmt.Errorf("WithDialect: %w", err), OutcomeNotApplied}
		}
		return nil
	}
}

// WithMaxResponseBytes limits a response that is read whole, in bytes after decompression. If it is longer, the call
// returns [ErrResponseTooLarge]. In a streamed response, it limits each row, and everything other than columns and rows
// taken together. Default 32 MiB.
func WithMaxResponseBytes(n int64) Option {
	return func(s *settings) error {
		if n <= 0 {
			return invalid("WithMaxResponseBytes", "%d is not above 0", n)
		}
		s.maxBody = n
		return nil
	}
}

// WithPlainHTTP allows an http base URL that is not on loopback. Anyone who sees the traffic then sees the password.
func WithPlainHTTP() Option {
	return func(s *settings) error {
		s.plainHTTP = true
		return nil
	}
}
