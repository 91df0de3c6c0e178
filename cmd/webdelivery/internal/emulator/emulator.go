// Package emulator has the command that runs a fake of the service.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const about = `Run a fake of the service, to try requests by hand and to test programs in any
language, with some tasks, lists and events. It purges URIs of example.com,
example.net and their subdomains, and logs each request; status 0 means that
the client had left.

The file of --config is JSON with faults and a dialect, all optional:

  {
    "faults": [{"path": "/cache/purge", "probability": 0.1, "seed": 7,
                "status": 503, "header": {"Retry-After": ["2"]}}],
    "dialect": {"tasks_prefix": "/operations", "session_reply": "cookie"}
  }

The first fault that matches a request decides what happens to it. Its members:

  method       of the requests it hits, such as GET
  path         below /CUSTOMER/v1; * is one element, a final ** is any rest
  skip         number of matching requests that pass first
  count        number of requests to hit; 0 is all
  probability  share of the requests to hit, from 0 to 1; 0 is all
  seed         number that decides which requests that share contains
  delay        duration to wait before anything else, such as 250ms
  status       status to answer with, instead of executing the request
  header       headers of the response, such as {"Retry-After": ["2"]}
  body         body of the response
  execute      true executes the request before it answers with status
  cut          closes the connection: before-read, after-read, after-execute,
               body or chunked
  cut_after    bytes of the body before a cut or stall; 0 is half of it
  stall        duration for which the body pauses once
  dribble      duration between two bytes of the body

Members of the dialect, with their values; the first one is the default:

  tasks_prefix           path in front of /tasks: "", any path
  start_time_param       parameter of statistics: starttime, any name
  entry_key              member of an added entry: entry, any name
  entry_delete_path      /config/networklists/{list}/{entry}, any with both
  batch_deletion_method  POST, any method
  session_reply          id, session_id, sessionid, authtoken, token, string,
                         cookie, text
  purge_reply            201, 200, 303-body, 303-location
  too_fast               purges above --purge-rate: 503, 503-retry-after, 429,
                         429-retry-after
  final                  status of a transaction that ended well: COMPLETE, any
  errors                 code, message, error_info, html, empty
  entries_reply          task, task_id, id, entries, empty
  next_uri               relative, prefixed, absolute, query, last-element,
                         no-scheme, other-scheme, other-host, other-prefix
  no_rows                rows of a result without any: array, null
  total                  total_results: integer, float
  absent                 a dimension that an event lacks: null, empty, dash
  vocabulary             words of events: document, portal`

// options are the values of the flags.
type options struct {
	listen, customer, config, env string
	users                         []string
	events                        float64
	purgeRate                     int
}

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "emulator", Short: "Run a fake of the service", Long: about,
		Example: `  webdelivery emulator --listen 127.0.0.1:9000 --user bob:secret --events 5
  webdelivery emulator --env emulator.env &
  . ./emulator.env; webdelivery tasks list   # once that file exists`,
		Args: cobra.NoArgs,
	}
	var o options
	// The default port differs from that of report --serve, so that both can run at the same time.
	c.Flags().StringVar(&o.listen, "listen", "127.0.0.1:8190", "TCP `address` to listen on; port 0 takes a free one")
	c.Flags().StringVar(&o.customer, "customer", "acme", "customer `name` in the path of every request")
	c.Flags().StringArrayVar(&o.users, "user", []string{"alice:correct-horse-battery"},
		"user who may log in, as `name:password`; may be repeated")
	c.Flags().Float64Var(&o.events, "events", 1, "`number` of security events per second, on average")
	c.Flags().IntVar(&o.purgeRate, "purge-rate", 2, "`number` of purges accepted per second, others get 503; 0 accepts all")
	c.Flags().StringVar(&o.config, "config", "", "JSON `file` with faults and a dialect")
	c.Flags().StringVar(&o.env, "env", "",
		"write the export lines to this `file` once the service runs; removed at the end")
	c.RunE = func(c *cobra.Command, _ []string) error { return run(c.Context(), app, o) }
	return c
}

// run serves until the context ends.
func run(ctx context.Context, app *cli.App, o options) error {
	file, err := readConfig(app, o.config)
	if err != nil {
		return err
	}
	srv, err := start(app, o, file)
	if err != nil {
		return err
	}
	defer srv.Close()
	if !cli.Loopback(o.listen) {
		app.Tell("warning: other machines can reach %s, and passwords are sent unencrypted; "+
			"use --listen 127.0.0.1:PORT to avoid it", o.listen)
	}
	cli.Fill(srv)
	variables := exports(srv, file.Dialect)
	if o.env != "" {
		if err := cli.WriteFile(o.env, []byte(variables)); err != nil {
			return fmt.Errorf("--env: %w", err)
		}
		defer func() { _ = os.Remove(o.env) }() // its service has stopped
	}
	fmt.Fprint(app.Out, "# In another shell, for the other commands, of which api sends any request:\n", variables)
	fmt.Fprintf(app.Out, "\nThe fake service is at %s, and stops on ^C.\n", srv.URL)
	<-ctx.Done()
	fmt.Fprintln(app.Out, "Stopped.")
	return nil
}

// start starts the service. The log gets one line per request, without headers and bodies, which hold credentials.
func start(app *cli.App, o options, file config) (*webdeliverytest.Server, error) {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return nil, cli.Misused("--listen: %w; write it like 127.0.0.1:8190", err)
	}
	requests := log.New(app.Err, "", log.LstdFlags|log.LUTC)
	settings := []webdeliverytest.Option{
		webdeliverytest.WithAddress(o.listen), webdeliverytest.WithCustomer(o.customer),
		webdeliverytest.WithDialect(file.Dialect), webdeliverytest.WithSmallIDs(), // jq rounds the others
		webdeliverytest.WithRequestLog(func(r webdeliverytest.Request) {
			path := cli.Printable(strings.TrimSuffix(r.Path+"?"+r.RawQuery, "?"))
			requests.Printf("%d user=%q %s %s", r.Status, r.User, r.Method, path)
		}),
	}
	var users []webdeliverytest.User
	for _, text := range o.users {
		name, password, _ := strings.Cut(text, ":")
		users = append(users, webdeliverytest.User{Name: name, Password: password}) // the server refuses an empty one
	}
	settings = append(settings, webdeliverytest.WithUsers(users...))
	if o.events != 0 {
		settings = append(settings, webdeliverytest.WithEvents(o.events, 1, time.Time{}))
	}
	if o.purgeRate == 0 {
		settings = append(settings, webdeliverytest.WithUnlimitedPurges())
	} else {
		settings = append(settings, webdeliverytest.WithPurgeRate(o.purgeRate, time.Second))
	}
	srv, err := webdeliverytest.Start(settings...)
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return nil, cli.Advise(fmt.Errorf("--listen %s: %w", o.listen, network.Err),
			"use another --listen: 127.0.0.1:0 takes a free port")
	}
	if err != nil {
		return nil, cli.Misused("%s", goName.ReplaceAllString(err.Error(), ""))
	}
	for _, rule := range file.Faults {
		srv.Fail(rule)
	}
	return srv, nil
}
