package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// A request has at most so many events, and so many bytes before compression unless a single event has more.
const (
	maxBatch = 500
	maxBytes = 1_000_000
)

// event is an event as a collector receives it.
type event struct {
	key  string
	json []byte
}

// delivery sends events to a collector. It stores the cursor only when the collector has acknowledged, or FILE.rejected
// has, all events before it.
type delivery struct {
	set    settings
	cursor *webdelivery.CursorFile
	export *webdelivery.Export
	meters *meters
	encode encoder
	post   func(events []event) error

	batch  []event
	size   int       // of the batch, in bytes
	rows   int64     // written, including those before the cursor of the start
	recent int64     // rows since the last store
	since  time.Time // of the first of them
	err    error     // something has failed: nothing more is sent or stored
}

// deliver sends events until ctx ends.
func deliver(ctx context.Context, client *webdelivery.Client, set settings, s program.Streams) error {
	cursor, err := webdelivery.OpenCursorFile(set.cursor)
	if err != nil {
		return program.Unwritten(set.cursor, err)
	}
	defer cursor.Close()
	c, columns, err := begin(ctx, client, set, cursor.Cursor, s)
	if err != nil {
		return err
	}
	if err := cursor.Store(c.events.Cursor()); err != nil { // a restart before the first event begins at the same time
		return program.Unwritten(set.cursor, err)
	}
	err = c.follow(ctx, set, &delivery{
		set: set, cursor: cursor, export: c.events, meters: &c.meters, encode: set.to.encoder(columns), rows: c.rows,
		post: func(events []event) error { return set.to.post(ctx, events) },
	}, s.Err)
	if err == nil {
		fmt.Fprintf(s.Err, "events: %d events delivered; the same command continues\n", c.meters.delivered.Load())
	}
	return err
}

// Write adds an event to the batch, and sends it when it is full.
func (d *delivery) Write(row webdelivery.Row) error {
	key := d.export.Key()
	text, err := d.encode(row, key)
	if err != nil {
		return err
	}
	if d.size+len(text) > maxBytes {
		if err := d.flush(); err != nil {
			return err
		}
	}
	d.batch, d.size = append(d.batch, event{key, text}), d.size+len(text)+1
	if d.recent == 0 {
		d.since = time.Now()
	}
	d.rows++
	d.recent++
	due := d.recent >= d.set.pace.rows || time.Since(d.since) >= d.set.pace.every
	if due || len(d.batch) == maxBatch {
		err = d.flush()
	}
	if due && err == nil {
		err = d.store()
	}
	return err
}

// Keep sends the batch and stores the cursor.
func (d *delivery) Keep() (int64, error) {
	err := d.flush()
	if err == nil {
		err = d.store()
	}
	return d.rows, err
}

// Finish is never called: -follow has no end.
func (d *delivery) Finish() error { return nil }

// Close does nothing: who opened the cursor closes it.
func (d *delivery) Close() {}

func (d *delivery) flush() error {
	if d.err == nil && len(d.batch) > 0 {
		d.err = d.send(d.batch)
		d.batch, d.size = d.batch[:0], 0
	}
	return d.err
}

// send sends events. If the collector refuses them, it sends each half, down to single events, and puts aside those that
// are refused alone. The collector may thus get others several times, with the same key: it says neither which ones it
// refuses nor, with OTLP, whether it keeps the others.
func (d *delivery) send(events []event) error {
	err := d.post(events)
	var no *refusal
	switch half := len(events) / 2; {
	case err == nil:
		d.meters.delivered.Add(int64(len(events)))
		return nil
	case !errors.As(err, &no):
		return err
	case half == 0:
		return d.putAside(events[0], no)
	default:
		if err := d.send(events[:half]); err != nil {
			return err
		}
		return d.send(events[half:])
	}
}

// putAside appends an event to FILE.rejected.
func (d *delivery) putAside(e event, why error) error {
	file, err := os.OpenFile(rejectedOf(d.set.cursor), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(e.json, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	d.meters.rejected.Add(1)
	fmt.Fprintf(d.set.to.stderr, "events: %s has rejected event %s (%v), which is now in %s\n", d.set.to.url.Host, e.key, why, file.Name())
	return nil
}

func rejectedOf(cursor string) string { return cursor + ".rejected" }

// store stores the cursor, unless a row was read and not written.
func (d *delivery) store() error {
	cursor := d.export.Cursor()
	if cursor.Count() != d.rows {
		return nil
	}
	if d.err = d.cursor.Store(cursor); d.err == nil {
		d.recent = 0
		d.meters.reach(cursor.Time())
	}
	return d.err
}

func timeOf(row webdelivery.Row) (time.Time, error) {
	at, _ := row.Get(webdelivery.DimEventTimestamp)
	return at.Time()
}
