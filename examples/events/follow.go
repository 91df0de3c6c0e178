package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// follow exports what happened up to a delay ago, waits as long, and continues after the last event until ctx ends. An
// error of the service ends only the first round: later ones are printed, and the next round tries again.
func (c *copying) follow(ctx context.Context, stats *webdelivery.StatsService, set settings, out output, s program.Streams) error {
	query := set.query
	for round := 0; ctx.Err() == nil; {
		query.End = time.Now().Add(-set.follow)
		if query.Start.Before(query.End) {
			c.events = stats.NewExport(query, c.events.Cursor(), webdelivery.ExportOptions{})
			err := c.each(ctx, out)
			_, lost := out.Keep()
			switch {
			case c.broken, lost != nil:
				return errors.Join(err, lost)
			case err == nil || ctx.Err() != nil: // the loop goes on, or ends
			case round == 0 && !isLate(err):
				return err
			default:
				fmt.Fprintf(s.Err, "events: %v\n", err)
			}
			round++
		}
		select {
		case <-ctx.Done():
		case <-time.After(set.follow):
		}
	}
	return nil
}

// isLate reports whether all events were written but those that the service recorded late.
func isLate(err error) bool { return errors.As(err, new(*webdelivery.IncompleteError)) }
