package events

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// sink is where events go. After an error it is not used again, and the stored position stays.
type sink interface {
	// write takes an event, and may commit.
	write(ctx context.Context, row webdelivery.Row, at time.Time) error
	// commit makes all that was written safe, and then stores the position behind it; now, or when it is time.
	commit(ctx context.Context, now bool) error
}

// stream writes to standard output. It has no position.
type stream struct {
	*job

	format format
	out    *bufio.Writer
}

func (s *stream) write(_ context.Context, row webdelivery.Row, at time.Time) error {
	_, err := s.out.Write(s.format.line(row, at))
	s.delivered.Add(1)
	return err
}

// commit writes what is buffered, so that the output ends with a whole row.
func (s *stream) commit(context.Context, bool) error {
	return s.out.Flush()
}

// folder writes files that are complete when they get their names. Until then a file ends in .partial. Its name has the
// number of its first event, so whoever starts next knows what a kill has left: if the stored position is behind that
// event, the file was complete, and its name is finished; otherwise its events are read again, and it is removed.
type folder struct {
	*job

	format format

	file  *os.File // nil between two files
	out   *bufio.Writer
	size  int64     // of the file
	begun time.Time // when the file was created

	written int64 // events in the file
}

func (d *folder) write(ctx context.Context, row webdelivery.Row, at time.Time) (err error) {
	if d.file == nil {
		name := fmt.Sprintf("events-%012d-%s.%s.partial",
			d.export.Cursor().Count(), at.Format("20060102T150405Z"), d.format.extension)
		d.file, err = os.OpenFile(filepath.Join(d.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		d.out, d.begun, d.size = bufio.NewWriterSize(d.file, 1<<16), time.Now(), 0
		_, _ = d.out.WriteString(d.format.header) // a later call returns the error
	}
	n, err := d.out.Write(d.format.line(row, at))
	d.size += int64(n)
	d.written++
	if err != nil || !d.due() {
		return err
	}
	return d.commit(ctx, true)
}

func (d *folder) due() bool {
	return d.rotate.size > 0 && d.size >= d.rotate.size || time.Since(d.begun) >= d.rotate.age
}

// commit makes the file safe, then stores the position behind it, and then gives it its name.
func (d *folder) commit(_ context.Context, now bool) error {
	switch {
	case d.file == nil:
		return d.position.Store(d.export.Cursor())
	case !now && !d.due():
		return nil
	}
	name := d.file.Name()
	own, err := d.file.Stat()
	if err := errors.Join(err, d.out.Flush(), d.file.Sync(), d.file.Close()); err != nil {
		return err
	}
	if there, err := os.Lstat(name); err != nil || !os.SameFile(own, there) {
		return fmt.Errorf("%s was removed while it was written; the next run writes its events again", name)
	}
	if err := d.position.Store(d.export.Cursor()); err != nil {
		return err
	}
	d.delivered.Add(d.written)
	d.file, d.written = nil, 0
	return os.Rename(name, strings.TrimSuffix(name, ".partial"))
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

// goOn continues in a folder, whose file says what was asked for at first. As long as there are no events, that may
// change. The end of the query becomes that of the first run.
func (j *job) goOn(command string) error {
	type asked struct {
		Command string    `json:"command"`
		End     time.Time `json:"end"` // zero if there is none; the cursor has the start
	}
	events := j.position.Cursor.Count()
	if err := tidy(j.dir, events); err != nil {
		return err
	}
	var first asked
	name := filepath.Join(j.dir, "export.json")
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &first)
	}
	switch {
	case err == nil && first.Command == command:
		j.query.End = first.End
		return nil
	case events > 0 && err != nil:
		return fmt.Errorf("%s cannot be read: %w; name another --dir", name, err)
	case events > 0:
		return cli.Misused("the folder was begun with: %s; give the same flags, or name another --dir",
			first.Command)
	}
	j.position.Cursor = webdelivery.Cursor{}
	if text, err = json.Marshal(asked{command, j.query.End}); err != nil {
		return err
	}
	return cli.WriteFile(name, text)
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
func (j *job) serve(ctx context.Context) error {
	if j.metrics == "" {
		return nil
	}
	listener, err := cli.Listen(ctx, "--metrics", j.metrics)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lag := time.Since(time.UnixMilli(j.reached.Load()))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprintf(w, metrics, lag.Seconds(), j.delivered.Load(), j.export.Late(), j.rejected.Load())
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // until Close
	j.app.Tell("metrics are at http://%s/metrics", listener.Addr())
	return nil
}
