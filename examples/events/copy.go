package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/schollz/progressbar/v3"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// copying copies rows to an output.
type copying struct {
	received           []string // the columns of the first response
	rows, total, limit int64    // a limit of 0 means all
	bar                *progressbar.ProgressBar
	events             *webdelivery.Export
	meters             meters // of -follow
}

// write writes all rows, or follows.
func (c *copying) write(ctx context.Context, set settings, out output, s program.Streams) error {
	if set.follow > 0 {
		return c.follow(ctx, set, out, s.Err)
	}
	return c.copy(ctx, out)
}

// copy writes all rows. If it ends early, the error says how many rows the output has.
func (c *copying) copy(ctx context.Context, out output) error {
	err := c.each(c.events.All(ctx), out)
	if err == nil && c.rows < c.total { // some of the counted events are gone
		err = &webdelivery.IncompleteError{Got: c.rows, Total: c.total}
	}
	if err == nil {
		return out.Finish()
	}
	kept, lost := out.Keep()
	switch { // if the output itself has failed, the number of its rows is unknown
	case lost == nil:
		return fmt.Errorf("after %d of %d events: %w", kept, c.total, err)
	case errors.Is(err, lost):
		return err
	default:
		return errors.Join(err, lost)
	}
}

// each writes rows as long as they have the columns of the first response.
func (c *copying) each(rows iter.Seq2[webdelivery.Row, error], out output) error {
	first := c.rows
	_ = c.bar.Set64(c.rows)
	_ = c.bar.RenderBlank() // also before the first row
	if c.limit > 0 && c.rows >= c.limit {
		return nil
	}
	for row, err := range rows {
		if err == nil && c.rows == first && !slices.Equal(row.Columns(), c.received) {
			err = fmt.Errorf("the columns have changed from %[2]q to %[1]q", row.Columns(), c.received)
		}
		if err == nil {
			err = out.Write(row)
		}
		if err != nil {
			return err
		}
		c.rows++
		_ = c.bar.Set64(c.rows)
		if c.rows == c.limit {
			return nil
		}
	}
	return nil
}
