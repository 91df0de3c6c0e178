package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// defaultAddress differs from that of the dashboard, so that both can run at the same time.
const defaultAddress = "127.0.0.1:8190"

// settings are the values of the flags.
type settings struct {
	listen, customer string
	env              string // file of the export lines; "" is none
	users            []webdeliverytest.User
	events           float64
	seed             uint64
	purgeRate        int
	countRefused     bool
	largeIDs         bool
	sessionLifetime  program.Duration
	file             file
}

func parse(ctx context.Context, args []string, s program.Streams) (set settings, err error) {
	var config string
	flags := program.FlagsAlone("emulator", source, s)
	flags.StringVar(&set.listen, "listen", defaultAddress, "TCP `address` to listen on; port 0 takes a free one")
	flags.StringVar(&set.env, "env", "", "write the export lines to this `file` as soon as the service runs, and remove it at the end")
	flags.StringVar(&set.customer, "customer", "acme", "customer `name` in the path of every request")
	flags.Func("user", "user who may log in, as `name:password`; may be repeated (default alice:correct-horse-battery)", func(text string) error {
		name, password, _ := strings.Cut(text, ":")
		set.users = append(set.users, webdeliverytest.User{Name: name, Password: password})
		return nil // the server refuses a user without a password
	})
	flags.Float64Var(&set.events, "events", 1, "security events per second, a `number`, on average")
	flags.Uint64Var(&set.seed, "seed", 1, "`number` that determines the events")
	flags.IntVar(&set.purgeRate, "purge-rate", 2, "`number` of purge requests that are accepted per second, others get 503; 0 accepts all")
	flags.BoolVar(&set.countRefused, "count-refused", false, "count purges that are refused as too fast against the rate, too")
	flags.BoolVar(&set.largeIDs, "large-ids", false, "give transactions ids above 2^53, which JavaScript and jq round")
	flags.Var(&set.sessionLifetime, "session-lifetime", "`duration` after which a session ends, such as 30m or 12h; 0s is never")
	flags.StringVar(&config, "config", "", "JSON `file` with faults and dialect")
	if err = program.ParseAlone(flags, args); err != nil {
		return set, err
	}
	if program.Special(set.env) { // a new file would take the place of a device or link
		return set, program.Misused("-env: %s exists and is not a regular file; name another file", set.env)
	}
	if config != "" {
		if set.file, err = readFile(ctx, config); err != nil && ctx.Err() == nil {
			err = program.Misused("-config: %w", err)
		}
	}
	return set, err
}

// start starts the service. The log gets one line per request, without headers and bodies, which hold credentials.
func (set settings) start(ctx context.Context, log *slog.Logger) (*webdeliverytest.Server, error) {
	if _, _, err := net.SplitHostPort(set.listen); err != nil {
		return nil, program.Misused("-listen: %w; write it like 127.0.0.1:8190", err)
	}
	options := []webdeliverytest.Option{
		webdeliverytest.WithAddress(set.listen),
		webdeliverytest.WithCustomer(set.customer),
		webdeliverytest.WithDialect(set.file.Dialect),
		webdeliverytest.WithRequestLog(func(r webdeliverytest.Request) {
			log.Info("request", "method", r.Method, "path", r.Path, "query", r.RawQuery, "uris", bytes.Count(r.Body, []byte(`"uri_pattern"`)),
				"status", r.Status, "user", r.User)
		}),
	}
	if set.users != nil {
		options = append(options, webdeliverytest.WithUsers(set.users...))
	}
	if set.events != 0 {
		options = append(options, webdeliverytest.WithEvents(set.events, set.seed, time.Time{}))
	}
	if set.sessionLifetime != 0 {
		options = append(options, webdeliverytest.WithSessionLifetime(time.Duration(set.sessionLifetime)))
	}
	if set.purgeRate == 0 {
		options = append(options, webdeliverytest.WithUnlimitedPurges())
	} else {
		options = append(options, webdeliverytest.WithPurgeRate(set.purgeRate, time.Second))
	}
	if !set.largeIDs {
		options = append(options, webdeliverytest.WithSmallIDs())
	}
	if set.countRefused {
		options = append(options, webdeliverytest.WithRefusedPurgesCounted())
	}
	srv, err := program.Until(ctx, func() (*webdeliverytest.Server, error) {
		return webdeliverytest.Start(options...) // resolves the host of -listen, if it is a name
	}, (*webdeliverytest.Server).Close)
	switch network := new(net.OpError); {
	case err == nil:
	case ctx.Err() != nil:
		return nil, err
	case errors.As(err, &network):
		return nil, program.Advise(fmt.Errorf("-listen %s: %w", set.listen, network.Err), "use another -listen: 127.0.0.1:0 takes a free port")
	default:
		return nil, program.Misused("%w", err)
	}
	for _, f := range set.file.Faults {
		srv.Fail(f.rule())
	}
	return srv, nil
}
