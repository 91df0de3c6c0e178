// Events sends security events as JSON lines to a collector as they come. None is lost, and one that comes twice has the
// same key. Let a supervisor restart it. Run it with: go run ./examples/events https://collector.example.com/ cursor.json
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

type event struct {
	Key    string            `json:"key"`
	Time   time.Time         `json:"time"   stats:"event_timestamp_ms"`
	Client webdelivery.Value `json:"client" stats:"client_ip"` // a Value takes whatever the service sends
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithLogger(slog.Default())) // tells of outages and late events
	if err != nil || len(args) != 2 {
		return errors.Join(err, errors.New("usage: events URL CURSORFILE"))
	}
	file, err := webdelivery.OpenCursorFile(args[1])
	if err != nil {
		return err
	}
	defer file.Close()
	query := webdelivery.EventsQuery{Dimensions: webdelivery.DimensionsOf[event](), Start: time.Now().Add(-time.Hour)}
	export := client.Stats.NewExport(query, file.Cursor, webdelivery.ExportOptions{Lookback: 20 * time.Minute})
	for round := range export.Follow(ctx, time.Minute) {
		if err := file.Store(export.Cursor()); err != nil { // the collector has taken what is before it
			return err
		}
		var lines bytes.Buffer
		for e, err := range webdelivery.Scan[event](round) {
			if err != nil {
				return err
			}
			e.Key = export.Key()
			if err := errors.Join(json.NewEncoder(&lines).Encode(e), post(args[0], &lines, 1<<20)); err != nil {
				return err
			}
		}
		if err := post(args[0], &lines, 1); err != nil {
			return err
		}
	}
	return file.Store(export.Cursor())
}

func post(url string, lines *bytes.Buffer, least int) error {
	if lines.Len() < least { // bytes
		return nil
	}
	response, err := http.Post(url, "application/x-ndjson", lines) //nolint:noctx,gosec // ^C does not cut it short
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode >= 300 {
			return errors.New("the collector answered " + response.Status)
		}
	}
	return err
}
