package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// journal writes the log of a client. Its records contain only harmless facts, and never a header, a body or a query
// value.
type journal struct {
	logger  *slog.Logger // nil: no log
	base    *address.Base
	secrets *Secrets
}

// record says which request and which attempt a log record is about.
type record struct {
	method, path string // path is below the base
	attempt      int
	err          error
}

// attempt writes the record of one attempt, at Debug. waited is how long it waited for a permit.
func (j *journal) attempt(ctx context.Context, r record, status int, took, waited time.Duration, bytes int64) {
	if j.logger == nil || !j.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	j.write(ctx, slog.LevelDebug, "webdelivery: attempt", r.err,
		slog.String("method", r.method),
		slog.String("path", j.path(r)),
		slog.Int("status", status),
		slog.Duration("duration", took-waited),
		slog.Int("attempt", r.attempt),
		slog.Duration("wait", waited),
		slog.Int64("bytes", bytes))
}

// warn writes a record at Warn, with the request that it belongs to.
func (j *journal) warn(ctx context.Context, message string, r record, attrs ...slog.Attr) {
	if j.logger == nil || !j.logger.Enabled(ctx, slog.LevelWarn) {
		return
	}
	j.write(ctx, slog.LevelWarn, message, r.err, append([]slog.Attr{
		slog.String("method", r.method),
		slog.String("path", j.path(r)),
		slog.Int("attempt", r.attempt),
	}, attrs...)...)
}

// Warn writes what a person should know of a query at Warn, before its first attempt.
func (t *Transport) Warn(ctx context.Context, r Request, message, warning string) {
	if j := &t.journal; j.logger != nil && j.logger.Enabled(ctx, slog.LevelWarn) {
		j.write(ctx, slog.LevelWarn, message, nil, slog.String("method", r.Method),
			slog.String("path", j.path(record{path: r.Path})), slog.String("warning", warning))
	}
}

func (j *journal) path(r record) string { return j.secrets.Text(j.base.Path(r.path)) }

func (j *journal) write(ctx context.Context, level slog.Level, message string, err error, attrs ...slog.Attr) {
	if err != nil {
		attrs = append(attrs, slog.String("error", j.secrets.Line(err.Error())))
	}
	j.logger.LogAttrs(ctx, level, message, attrs...)
}
