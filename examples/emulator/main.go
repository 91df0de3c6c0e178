// Emulator runs a fake of the web-delivery management service. Use it to try requests by hand, and to test programs
// that are not written in Go. It starts with some tasks, two network lists and security events. It prints curl commands
// for each area of the service, and export lines that make the other example programs work with it. It logs each request
// to standard error; status 0 means that the client had left.
//
//	emulator
//	emulator -listen 127.0.0.1:9000 -user bob:secret -purge-rate 10 -config emulator.json
//	emulator -env emulator.env &   # and once that file exists: . ./emulator.env; quickstart
//
// The file of -config is JSON with faults and a dialect. All members are optional. Names may have any letter case, with
// or without underscores:
//
//	{
//		"faults": [
//			{"path": "/cache/purge", "probability": 0.1, "seed": 7, "status": 503, "header": {"Retry-After": ["2"]}},
//			{"method": "GET", "path": "/tasks/**", "skip": 3, "count": 1, "delay": "250ms", "cut": "after-read"}
//		],
//		"dialect": {"tasks_prefix": "/operations", "session_reply": "cookie", "too_fast": "429-retry-after"}
//	}
//
// The first fault that matches a request decides what happens to it. Members of a fault:
//
//	method       of the requests it hits, such as GET; default any
//	path         below /CUSTOMER/v1; * is one element, and a final ** is any rest; default any
//	skip         number of matching requests that pass first
//	count        number of requests to hit; 0 is all
//	probability  share of the requests to hit, from 0 to 1; 0 is all
//	seed         number that decides which requests that share contains
//	delay        duration to wait before anything else, such as 250ms
//	status       status to answer with, instead of executing the request
//	header       headers of the response, such as {"Retry-After": ["2"]}
//	body         body of the response
//	execute      true executes the request before it answers with status
//	cut          closes the connection: before-read, after-read, after-execute, body or chunked
//	cut_after    bytes of the body before a cut or stall; 0 is half of it
//	stall        duration for which the body pauses once
//	dribble      duration between two bytes of the body
//
// Members of the dialect, with their values; the first one is the default:
//
//	tasks_prefix           path in front of /tasks: "", any path
//	start_time_param       parameter of statistics: starttime, any name
//	entry_key              member of an added entry: entry, any name
//	entry_delete_path      /config/networklists/{list}/{entry}, any path with {list} and {entry}
//	batch_deletion_method  POST, any method
//	session_reply          id, session_id, sessionid, authtoken, token, string, cookie, text
//	purge_reply            201, 200, 303-body, 303-location
//	too_fast               purges above -purge-rate: 503, 503-retry-after, 429, 429-retry-after
//	final                  status of a transaction that ended well: COMPLETE, any word
//	errors                 code, message, error_info, html, empty
//	entries_reply          task, task_id, id, entries, empty
//	vocabulary             words of events: document, portal
//
// The other example programs speak the default dialect. They work with any value of the members from session_reply on.
//
// SIGINT and SIGTERM stop the emulator.
//
// Exit codes: 0 stopped, 1 could not listen or write the file of -env, 2 wrong usage.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("emulator", nil, run) }

// run serves until the context ends.
func run(ctx context.Context, args []string, s program.Streams) error {
	set, err := parse(ctx, args, s)
	if err != nil {
		return err
	}
	if set.env != "" {
		_ = os.Remove(set.env) // an emulator that was killed leaves it, and a script may wait for the new one
	}
	srv, err := set.start(ctx, slog.New(slog.NewTextHandler(s.Err, nil)))
	if err != nil {
		return err
	}
	defer srv.Close()
	if host, _, _ := net.SplitHostPort(set.listen); !isLoopback(host) {
		fmt.Fprintf(s.Err, "emulator: warning: other machines can reach %s, and passwords are sent unencrypted; use -listen 127.0.0.1:PORT to avoid it\n", set.listen)
	}
	printLines(s.Out, srv, set.file.Dialect, time.Now(), fill(srv))
	fmt.Fprintf(s.Out, "# In another shell, for the other example programs:\n%s\n", exports(srv))
	if set.env != "" {
		err := program.Replace(set.env, func(out io.Writer) error { _, err := io.WriteString(out, exports(srv)); return err })
		if err != nil {
			return fmt.Errorf("-env: %w", err)
		}
		defer func() { _ = os.Remove(set.env) }() // its service has stopped
	}
	fmt.Fprintf(s.Out, "The fake service is at %s, and stops on ^C.\n", srv.URL)
	<-ctx.Done()
	fmt.Fprintln(s.Out, "Stopped.")
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
