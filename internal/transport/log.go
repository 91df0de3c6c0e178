package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// The log never contains a header, a body or a query value.

// log logs an attempt at level Debug, for a stream when it is closed. waited is how long the attempt waited for a
// permit.
func (c *call) log(started time.Time, waited time.Duration) {
	if !c.t.logs(c.ctx, slog.LevelDebug) {
		return
	}
	write := func(bytes int64) {
		c.t.write(c.ctx, slog.LevelDebug, "webdelivery: attempt", &c.Request, c.last.err,
			slog.Int("status", c.last.status), slog.Duration("duration", time.Since(started)-waited), slog.Int("attempt", c.attempts),
			slog.Duration("wait", waited), slog.Int64("bytes", bytes))
	}
	if s := c.last.stream; s != nil {
		s.closed = write
	} else {
		write(c.last.size)
	}
}

// warn logs a message about an attempt at level Warn.
func (c *call) warn(message string, err error, attrs ...slog.Attr) {
	if c.t.logs(c.ctx, slog.LevelWarn) {
		c.t.write(c.ctx, slog.LevelWarn, message, &c.Request, err, append([]slog.Attr{slog.Int("attempt", c.attempts)}, attrs...)...)
	}
}

// Warn logs a warning about a request at level Warn, before its first attempt.
func (t *Transport) Warn(ctx context.Context, r Request, message, warning string) {
	if t.logs(ctx, slog.LevelWarn) {
		t.write(ctx, slog.LevelWarn, message, &r, nil, slog.String("warning", warning))
	}
}

func (t *Transport) logs(ctx context.Context, level slog.Level) bool {
	return t.Logger != nil && t.Logger.Enabled(ctx, level)
}

func (t *Transport) write(ctx context.Context, level slog.Level, message string, r *Request, err error, attrs ...slog.Attr) {
	attrs = append([]slog.Attr{slog.String("method", r.Method), slog.String("path", t.secrets.Text(t.Base.Path(r.Path)))}, attrs...)
	if err != nil {
		attrs = append(attrs, slog.String("error", redact.Line(t.secrets.Text(err.Error()))))
	}
	t.Logger.LogAttrs(ctx, level, message, attrs...)
}
