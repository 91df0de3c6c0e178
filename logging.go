package webdelivery

import (
	"log/slog"
	"time"
)

// A log record names what is known to be harmless; a header, a body or a query value is never in it.

// logAttempt writes one record an attempt, at Debug; of a stream when it is closed.
func (x *exchange) logAttempt(took, permitAfter time.Duration, bytes int64) {
	logger := x.client.logger
	if logger == nil || !logger.Enabled(x.ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", x.method),
		slog.String("path", x.shownPath()),
		slog.Int("status", x.last.status),
		slog.Duration("duration", took-permitAfter),
		slog.Int("attempt", x.attempts),
		slog.Duration("wait", permitAfter),
		slog.Int64("bytes", bytes),
	}
	if x.last.err != nil {
		attrs = append(attrs, slog.String("error", x.client.printableError(x.last.err)))
	}
	logger.LogAttrs(x.ctx, slog.LevelDebug, "webdelivery: attempt", attrs...)
}

// warn writes what a person should see, with the call it belongs to.
func (x *exchange) warn(message string, err error, attrs ...slog.Attr) {
	logger := x.client.logger
	if logger == nil || !logger.Enabled(x.ctx, slog.LevelWarn) {
		return
	}
	attrs = append([]slog.Attr{
		slog.String("method", x.method),
		slog.String("path", x.shownPath()),
		slog.Int("attempt", x.attempts),
	}, attrs...)
	if err != nil {
		attrs = append(attrs, slog.String("error", x.client.printableError(err)))
	}
	logger.LogAttrs(x.ctx, slog.LevelWarn, message, attrs...)
}

// shownPath is the path of the request, without a session in it.
func (x *exchange) shownPath() string { return x.client.auth.text(x.client.base.Path(x.path)) }

func (c *Client) printableError(err error) string { return printable(c.auth.text(err.Error())) }
