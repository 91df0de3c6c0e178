package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// follow exports in rounds until ctx ends. The output is safe after each of them.
func (c *copying) follow(ctx context.Context, set settings, out output, stderr io.Writer) error {
	if set.metrics != "" {
		if err := c.meters.serve(ctx, set.metrics, stderr); err != nil {
			return err
		}
	}
	for round := range c.events.Follow(ctx, set.follow) {
		before := c.rows
		err := c.each(round, out)
		if _, lost := out.Keep(); !errors.Is(err, lost) {
			err = errors.Join(err, lost)
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // what the collector has not taken is sent again
		}
		if err != nil {
			return err
		}
		if set.to == nil { // a delivery counts what the collector takes
			c.meters.delivered.Add(c.rows - before)
		}
		c.meters.reach(c.events.Cursor().Reached())
		c.meters.tell(stderr, set.follow)
	}
	return nil
}

// warnings prints what Follow does not return but logs: late events, and rounds that have failed.
type warnings struct{ stderr io.Writer }

// Enabled reports whether the level is that of a warning.
func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle prints the warnings of an export. Those of single requests are not interesting.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "webdelivery: statistics" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "warning" {
				fmt.Fprintln(w.stderr, "events:", program.WithFlags(a.Value.String()))
			}
			return true
		})
	}
	return nil
}

// WithAttrs and WithGroup change nothing.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w warnings) WithGroup(string) slog.Handler      { return w }
