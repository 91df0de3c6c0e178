// Emulator is a fake of the web-delivery management service as a program: for trying requests by hand, and for programs
// that are not written in Go. It begins with a few tasks, two network lists and security events, and prints a curl line
// for each area of the service.
//
//	go run ./examples/emulator
//	go run ./examples/emulator -listen 127.0.0.1:9000 -user bob:secret -purge-rate 10 -config emulator.json
//
// The file of -config holds faults and spellings, all of them optional; names are those of webdeliverytest.FaultRule and
// webdeliverytest.Dialect, in any letter case and with or without underscores:
//
//	{
//		"faults": [
//			{"path": "/cache/purge", "probability": 0.1, "seed": 7, "status": 503, "header": {"Retry-After": ["2"]}},
//			{"method": "GET", "path": "/tasks/**", "skip": 3, "count": 1, "delay": "250ms", "cut": "after-read"}
//		],
//		"dialect": {"tasks_prefix": "/operations", "session_reply": "cookie", "too_fast": "429-retry-after"}
//	}
//
// A purge above -purge-rate gets 503; too_fast has other spellings. With -count-refused such a purge counts against the
// rate.
//
// It stops on SIGINT and SIGTERM. Exit codes: 0 stopped, 1 cannot listen, 2 used wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Exit codes.
const (
	done   = 0
	failed = 1
	misuse = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until the context ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	set, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return done
	case err != nil:
		return misuse // package flag has said why
	}
	srv, err := set.start(slog.New(slog.NewTextHandler(stderr, nil)))
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		fmt.Fprintln(stderr, "emulator:", err)
		return failed
	case err != nil:
		fmt.Fprintln(stderr, "emulator:", err)
		return misuse
	}
	defer srv.Close()
	if host, _, _ := net.SplitHostPort(set.listen); !isLoopback(host) {
		fmt.Fprintf(stderr, "emulator: other machines can reach %s, and passwords are sent in the clear\n", set.listen)
	}
	printLines(stdout, srv, set.file.Dialect, time.Now(), fill(srv))
	fmt.Fprintf(stdout, "The fake service is at %s, and stops on ^C.\n", srv.URL)
	<-ctx.Done()
	fmt.Fprintln(stdout, "Stopped.")
	return done
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// settings are what the flags say.
type settings struct {
	listen, customer string
	users            []webdeliverytest.User
	events           float64
	seed             uint64
	purgeRate        int
	countRefused     bool
	sessionLifetime  time.Duration
	file             file
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var set settings
	var config string
	flags := flag.NewFlagSet("emulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "Emulator is a fake of the web-delivery management service. Flags:\n\n")
		flags.PrintDefaults()
		fmt.Fprint(stderr, "\nIt stops on SIGINT and SIGTERM. Exit codes: 0 stopped, 1 cannot listen, 2 used wrongly.\n")
	}
	flags.StringVar(&set.listen, "listen", "127.0.0.1:8080", "TCP `address` to listen on; port 0 takes a free one")
	flags.StringVar(&set.customer, "customer", "acme", "customer `name` in the path of every request")
	flags.Func("user", "who may log in, as `name:password`; may be repeated (default alice:correct-horse-battery)", func(text string) error {
		name, password, _ := strings.Cut(text, ":")
		set.users = append(set.users, webdeliverytest.User{Name: name, Password: password})
		return nil // the server refuses one without a password
	})
	flags.Float64Var(&set.events, "events", 1, "security events a `second`, on average")
	flags.Uint64Var(&set.seed, "seed", 1, "`number` that says which events there are")
	flags.IntVar(&set.purgeRate, "purge-rate", 2, "purge requests a `second` that are accepted, more get 503; 0 accepts any number")
	flags.BoolVar(&set.countRefused, "count-refused", false, "purges that are refused as too fast count against the rate as well")
	flags.DurationVar(&set.sessionLifetime, "session-lifetime", 0, "`time` after which a session ends; 0 is never")
	flags.StringVar(&config, "config", "", "JSON `file` with faults and dialect")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, "emulator:", err)
	}
	if err == nil && config != "" {
		if set.file, err = readFile(config); err != nil {
			fmt.Fprintln(stderr, "emulator:", err)
		}
	}
	return set, err
}

// start starts the service. Each request becomes one line of the log; headers and bodies, where credentials are, do not.
func (set settings) start(log *slog.Logger) (*webdeliverytest.Server, error) {
	if _, _, err := net.SplitHostPort(set.listen); err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	options := []webdeliverytest.Option{
		webdeliverytest.WithAddress(set.listen),
		webdeliverytest.WithCustomer(set.customer),
		webdeliverytest.WithDialect(set.file.Dialect),
		webdeliverytest.WithRequestLog(func(r webdeliverytest.Request) {
			log.Info("request", "method", r.Method, "path", r.Path, "query", r.RawQuery, "status", r.Status, "user", r.User)
		}),
	}
	if set.users != nil {
		options = append(options, webdeliverytest.WithUsers(set.users...))
	}
	if set.events != 0 {
		options = append(options, webdeliverytest.WithEvents(set.events, set.seed, time.Time{}))
	}
	if set.sessionLifetime != 0 {
		options = append(options, webdeliverytest.WithSessionLifetime(set.sessionLifetime))
	}
	if set.purgeRate == 0 {
		options = append(options, webdeliverytest.WithUnlimitedPurges())
	} else {
		options = append(options, webdeliverytest.WithPurgeRate(set.purgeRate, time.Second))
	}
	if set.countRefused {
		options = append(options, webdeliverytest.WithRefusedPurgesCounted())
	}
	srv, err := webdeliverytest.Start(options...)
	if err != nil {
		return nil, err
	}
	for _, f := range set.file.Faults {
		srv.Fail(f.rule())
	}
	return srv, nil
}
