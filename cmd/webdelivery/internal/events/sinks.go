package events

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/events/table"
)

// sink is where events go. After an error it is not used again, and the stored position stays.
type sink interface {
	// Write takes an event, and may commit.
	Write(ctx context.Context, row webdelivery.Row, at time.Time) error
	// Commit makes all that was written safe, and then stores the position behind it. Unless the command ends, it may put
	// that off.
	Commit(ctx context.Context, ending bool) error
}

// stream writes to standard output. It has no position.
type stream struct {
	*meters

	table table.Table
	out   *bufio.Writer
}

// Write writes a row.
func (s *stream) Write(_ context.Context, row webdelivery.Row, at time.Time) (err error) {
	_, err = s.out.Write(s.table.Append(s.out.AvailableBuffer(), row, at))
	s.delivered.Add(1)
	return err
}

// Commit writes what is buffered, so that the output ends with a whole row.
func (s *stream) Commit(context.Context, bool) error {
	s.reach(s.export.Cursor().Reached())
	return s.out.Flush()
}

// folder writes files that are complete when they get their names. Until then a file ends in .partial. Its name has the
// number of its first event, so whoever starts next knows what a kill has left: if the stored position is behind that
// event, the file was complete, and its name is finished; otherwise its events are read again, and it is removed.
type folder struct {
	*meters

	name   string
	cursor *webdelivery.CursorFile
	table  table.Table
	rotate *rotation

	file  *os.File // nil between two files
	out   *bufio.Writer
	size  int64     // of the file
	begun time.Time // when the file was created
}

// Write writes a row, and completes the file when it is time.
func (d *folder) Write(_ context.Context, row webdelivery.Row, at time.Time) (err error) {
	if d.file == nil {
		name := fmt.Sprintf("events-%012d-%s.%s.partial", d.export.Cursor().Count(), at.Format("20060102T150405Z"), d.table.Extension)
		if d.file, err = os.OpenFile(filepath.Join(d.name, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		d.out, d.begun, d.size = bufio.NewWriterSize(d.file, 1<<16), time.Now(), 0
		_, _ = d.out.WriteString(d.table.Header) // a later call returns the error
	}
	n, err := d.out.Write(d.table.Append(d.out.AvailableBuffer(), row, at))
	d.size += int64(n)
	d.delivered.Add(1)
	if err == nil && d.due() {
		err = d.complete()
	}
	return err
}

func (d *folder) due() bool {
	return d.rotate.size > 0 && d.size >= d.rotate.size || time.Since(d.begun) >= d.rotate.age
}

// Commit completes the file if it is time, or if the command ends.
func (d *folder) Commit(_ context.Context, ending bool) error {
	cursor := d.export.Cursor()
	d.reach(cursor.Reached())
	switch {
	case d.file == nil:
		return d.cursor.Store(cursor)
	case ending || d.due():
		return d.complete()
	default:
		return nil
	}
}

// complete makes the file safe, then stores the position behind it, and then gives it its name.
func (d *folder) complete() error {
	if err := errors.Join(d.out.Flush(), d.file.Sync(), d.file.Close()); err != nil {
		return err
	}
	if err := d.cursor.Store(d.export.Cursor()); err != nil {
		return err
	}
	name := d.file.Name()
	d.file = nil
	return os.Rename(name, strings.TrimSuffix(name, ".partial"))
}

// openFolder opens a folder for a command, and creates it at first. The times of the query become those of the first run.
func openFolder(dir, command string, query *webdelivery.EventsQuery) (cursor *webdelivery.CursorFile, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, cli.Misused("--dir: %w", err)
	}
	if cursor, err = webdelivery.OpenCursorFile(filepath.Join(dir, "cursor")); err != nil {
		return nil, err
	}
	if err = tidy(dir, cursor.Cursor.Count()); err == nil {
		err = goOn(filepath.Join(dir, "export.json"), command, cursor, query)
	}
	if err != nil {
		_ = cursor.Close()
	}
	return cursor, err
}

// tidy finishes what a kill has left, if so many events are safe.
func tidy(dir string, safe int64) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		var first int64
		name := filepath.Join(dir, entry.Name())
		full, isPartial := strings.CutSuffix(name, ".partial")
		found, _ := fmt.Sscanf(entry.Name(), "events-%d-", &first)
		switch {
		case found == 0:
		case isPartial && first <= safe:
			err = errors.Join(err, os.Rename(name, full))
		case isPartial:
			err = errors.Join(err, os.Remove(name))
		case first > safe:
			return cli.Misused("%s belongs to another export; name another --dir", name)
		}
	}
	return err
}

// goOn reads or writes the file with what was asked for at first. As long as there are no events, that may change.
func goOn(name, command string, cursor *webdelivery.CursorFile, query *webdelivery.EventsQuery) error {
	type asked struct {
		Command string    `json:"command"`
		End     time.Time `json:"end"` // zero if there is none; the cursor has the start
	}
	var first asked
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &first)
	}
	switch differs := first.Command != command; {
	case cursor.Cursor.Count() == 0 && (err != nil || differs):
		cursor.Cursor = webdelivery.Cursor{}
		text, err := json.Marshal(asked{command, query.End})
		if err != nil {
			return err
		}
		return cli.WriteFile(name, text)
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w; name another --dir", name, err)
	case differs:
		return cli.Misused("the folder was begun with: %s; give the same flags, or name another --dir", cli.Printable(first.Command))
	}
	query.End = first.End
	return nil
}

// rotation is when a file is complete: at an age, or if it is above 0 at a size in bytes.
type rotation struct {
	age  time.Duration
	size int64
}

func (r *rotation) set(text string) error {
	const oldest = 24 * time.Hour // the service keeps events, which a kill makes it send again, for three days
	digits, isSize := strings.CutSuffix(text, "MB")
	size, err := strconv.ParseUint(digits, 10, 20)
	*r = rotation{oldest, int64(size) << 20}
	if !isSize {
		r.age, err = cli.ParseDuration(text)
	}
	if err != nil || r.age == 0 || r.age > oldest || isSize && size == 0 {
		return errors.New("want an age up to 1d such as 10m, or a size such as 100MB")
	}
	return nil
}

// meters say how far a command has come.
type meters struct {
	app                 *cli.App
	export              *webdelivery.Export
	delay               time.Duration // of follow; 0 for export
	reached             atomic.Int64  // everything before was delivered; in nanoseconds since 1970
	delivered, rejected atomic.Int64
	told                time.Time
}

// reach records that everything before a time was delivered.
func (m *meters) reach(at time.Time) {
	if ns := at.UnixNano(); !at.IsZero() && ns > m.reached.Load() {
		m.reached.Store(ns)
	}
}

func (m *meters) lag() time.Duration { return time.Since(time.Unix(0, m.reached.Load())) }

// tell says now and then that follow is far behind.
func (m *meters) tell() {
	if lag := m.lag(); m.delay > 0 && lag > 2*m.delay && time.Since(m.told) >= 10*time.Minute {
		m.told = time.Now()
		m.app.Tell("%v behind, which is more than twice --delay", lag.Round(time.Second))
	}
}

const metrics = `# TYPE webdelivery_export_lag_seconds gauge
webdelivery_export_lag_seconds %.3f
# TYPE webdelivery_export_events_total counter
webdelivery_export_events_total %d
# TYPE webdelivery_export_late_events_total counter
webdelivery_export_late_events_total %d
# TYPE webdelivery_export_rejected_events_total counter
webdelivery_export_rejected_events_total %d
`

// serve serves the metrics until ctx ends, if there is an address.
func (m *meters) serve(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return cli.Misused("--metrics: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprintf(w, metrics, m.lag().Seconds(), m.delivered.Load(), m.export.Late(), m.rejected.Load())
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // until Close
	m.app.Tell("metrics are at http://%s/metrics", listener.Addr())
	return nil
}
