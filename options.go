package webdelivery

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Option changes how a client works. An option that makes no sense is refused by [NewClient] with a [*ValidationError]
// that names it.
type Option func(*settings) error

// settings are what the options fill; the client is made of them once all are known.
type settings struct {
	next           http.RoundTripper // what sends
	attemptTimeout time.Duration
	idleTimeout    time.Duration
	logger         *slog.Logger
	userAgent      string
	retry          RetryPolicy
	limiter        Limiter
	dialect        Dialect
	maxBody        int64
	plainHTTP      bool
	strictTexts    bool
}

// WithHTTPClient sends through the Transport of client (a nil one is http.DefaultTransport), for a proxy, a client
// certificate, or tracing. Its Timeout, when set, becomes the time of one attempt, as by [WithAttemptTimeout]; the later
// of the two options holds. Its cookie jar and its CheckRedirect are not used. The client itself is neither changed nor
// kept, and its Transport is left as it is.
//
// Without this option a client has a transport of its own: HTTP/2 where the server has it, the proxy of the environment,
// up to 128 idle connections, 10 s to connect and 10 s for TLS. An idle connection is closed after 15 s, before common
// servers close it under a request; one of HTTP/2 that falls silent is probed after 10 s, and closed if nothing can be
// written to it for 10 s.
//
// A Transport that sends requests of its own, for example for a token, must give them another context than that of the
// SDK's request. The SDK would take their connections for those of its request: a purge could leave too early, and a
// write that was sent could look unsent.
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

// WithAttemptTimeout bounds one attempt: connection, request, and the whole reply. It begins when a purge has its
// permit. The whole call is bounded by its context alone; a purge that the service refuses as too fast also by
// ThrottleTimeout of [RetryPolicy]. Default 30 s.
func WithAttemptTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return invalid("WithAttemptTimeout", "%v is not above 0", d)
		}
		s.attemptTimeout = d
		return nil
	}
}

// WithIdleTimeout bounds how long a streamed reply may stand still in one attempt. A stream that goes on arriving has no
// time limit of its own. Default 60 s.
func WithIdleTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return invalid("WithIdleTimeout", "%v is not above 0", d)
		}
		s.idleTimeout = d
		return nil
	}
}

// WithLogger writes one record per attempt at Debug (method, path without query, status, duration, attempt, wait for a
// permit, bytes) and one per retry at Warn. A statistics query for which the service may no longer have all data is one
// record at Warn, see Warnings of [Result]. No header, body, query or credential is ever logged. Default: no log.
//
// The call waits for the logger's Handler, past the end of its context too, so a Handler must return soon. It must not
// call the same client: during a login, such a call returns an error if it uses the context that the Handler was given,
// and otherwise waits until its own context ends. An error of the Handler is ignored.
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
			return invalid("WithUserAgent", "%q is no header value", userAgent)
		}
		s.userAgent = userAgent
		return nil
	}
}

// WithRetry changes how often and how patiently calls are repeated. Default: the zero [RetryPolicy], 4 attempts.
func WithRetry(policy RetryPolicy) Option {
	return func(s *settings) error {
		var err error
		s.retry, err = policy.withDefaults()
		return err
	}
}

// WithPurgeLimiter replaces the limiter that every purge submission passes, retries included. Default: at most two purges
// are on their way or arrived within the last 1.05 s, of all clients of the process that have the same origin and
// customer. So no three purges arrive within a second (service-interface section 8).
//
// A limiter whose permits have an end ([PermitLimiter]) can keep that promise; one that only has Wait bounds departures.
// When several processes purge for one customer, package redislimit has one that they share. With any limiter, permits
// come at a slower pace while the service answers that purges come too fast; clients of the same origin and customer that
// have a limiter of their own share that pace.
func WithPurgeLimiter(limiter Limiter) Option {
	return func(s *settings) error {
		if limiter == nil {
			return invalid("WithPurgeLimiter", "is nil")
		}
		s.limiter = limiter
		return nil
	}
}

// WithDialect changes spellings on the wire that the service document leaves open. Default: the zero [Dialect].
func WithDialect(dialect Dialect) Option {
	return func(s *settings) error {
		var err error
		if s.dialect, err = dialect.withDefaults(); err != nil {
			return &changeError{fmt.Errorf("WithDialect: %w", err), OutcomeNotApplied}
		}
		return nil
	}
}

// WithMaxResponseBytes bounds a reply that is read whole, in bytes after decompression; a longer one is
// [ErrResponseTooLarge]. Of a reply that is streamed it bounds each row, and all else together: what stands before,
// between and behind columns and rows. Default 32 MiB.
func WithMaxResponseBytes(n int64) Option {
	return func(s *settings) error {
		if n <= 0 {
			return invalid("WithMaxResponseBytes", "%d is not above 0", n)
		}
		s.maxBody = n
		return nil
	}
}

// WithStrictTexts ends rows with [ErrBadReply] if a text in them is not UTF-8, or has half of a surrogate pair. Such texts
// come from clients of the service, for example in a path. Default: U+FFFD replaces what is no text, see [Value].
func WithStrictTexts() Option {
	return func(s *settings) error {
		s.strictTexts = true
		return nil
	}
}

// WithPlainHTTP allows an http base URL that is not on loopback. Whoever sees the traffic then sees the password.
func WithPlainHTTP() Option {
	return func(s *settings) error {
		s.plainHTTP = true
		return nil
	}
}
