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
// It stops on SIGINT and SIGTERM. Exit codes: 0 stopped, 1 did not begin to listen, 2 used wrongly.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
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
	srv, err := set.start(ctx, slog.New(slog.NewTextHandler(s.Err, nil)))
	if err != nil {
		return err
	}
	defer srv.Close()
	if host, _, _ := net.SplitHostPort(set.listen); !isLoopback(host) {
		fmt.Fprintf(s.Err, "emulator: other machines can reach %s, and passwords are sent in the clear\n", set.listen)
	}
	printLines(s.Out, srv, set.file.Dialect, time.Now(), fill(srv))
	fmt.Fprintf(s.Out, "The fake service is at %s, and stops on ^C.\n", srv.URL)
	<-ctx.Done()
	fmt.Fprintln(s.Out, "Stopped.")
	return nil
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

func parse(ctx context.Context, args []string, s program.Streams) (set settings, err error) {
	var config string
	flags := program.FlagsAlone("emulator", source, s)
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
	if err = program.Parse(flags, args); err != nil {
		return set, err
	}
	if flags.NArg() > 0 {
		return set, program.Misused("unexpected argument %q", flags.Arg(0))
	}
	if config != "" {
		if set.file, err = readFile(ctx, config); err != nil && ctx.Err() == nil {
			err = program.Misused("-config: %w", err)
		}
	}
	return set, err
}

// start starts the service. Each request becomes one line of the log; headers and bodies, where credentials are, do not.
func (set settings) start(ctx context.Context, log *slog.Logger) (*webdeliverytest.Server, error) {
	if _, _, err := net.SplitHostPort(set.listen); err != nil {
		return nil, program.Misused("-listen: %w", err)
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
	srv, err := program.Until(ctx, func() (*webdeliverytest.Server, error) {
		return webdeliverytest.Start(options...) // looks up the host of -listen, if that is a name
	}, (*webdeliverytest.Server).Close)
	if network := new(net.OpError); err != nil && ctx.Err() == nil && !errors.As(err, &network) {
		err = program.Misused("%w", err)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range set.file.Faults {
		srv.Fail(f.rule())
	}
	return srv, nil
}
