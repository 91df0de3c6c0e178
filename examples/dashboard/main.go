// Dashboard is a web page of the security statistics: trends, the largest groups of every category, the latest events.
//
//	dashboard [-listen 127.0.0.1:8080]
//	dashboard -o report.html [-since 7d] [-filter 'client_country_code==CN;event_action!=WARN']
//
// It prints its address and serves the page to this machine until it is interrupted; the page's form picks span and
// filter. With -o it writes the page to one file, - being stdout. A part that could not be read says why in its place.
//
// Exit codes: 0 done, 1 failed, nothing was written, 2 used wrongly, 3 written, but some parts could not be read.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func main() { program.Main("dashboard", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.Flags("dashboard", source, s)
	listen := set.String("listen", "127.0.0.1:8080", "loopback `address` to serve on; port 0 takes a free one")
	output := set.String("o", "", "`file` to write the page to, instead of serving it")
	since := set.String("since", "", "with -o: `span` until now: 1h, 6h, 1d (without it), 3d, 7d, 30d")
	filter := set.String("filter", "", "with -o: `expression` in the service's syntax")
	if err := program.Parse(set, args); err != nil {
		return err
	}
	switch {
	case set.NArg() > 0:
		return program.Misused("unexpected argument %q", set.Arg(0))
	case *output == "" && *since+*filter != "":
		return program.Misused("-since and -filter go with -o; the page that is served has a form for them")
	case !isLoopback(*listen):
		return program.Misused("-listen: %q is not of this machine alone, and the page asks for no password", *listen)
	}
	service, err := program.Connect(s.Err, nil, []webdeliverytest.Option{webdeliverytest.WithEvents(0.5, 7, time.Time{})}, nil)
	if err != nil {
		return err
	}
	defer service.Close()
	if *output == "" {
		return serve(ctx, *listen, handler(service.Client.Stats), s)
	}
	return write(ctx, *output, newPage(ctx, service.Client.Stats, url.Values{"since": {*since}, "filter": {*filter}}), s)
}

// write makes a file of a page, for its owner alone: what attackers did is not for everybody.
func write(ctx context.Context, name string, p *page, s program.Streams) error {
	var text strings.Builder
	p.Policy = policy
	err := pageTemplate.Execute(&text, p)
	switch {
	case p.Report == nil:
		return program.Misused("%s", p.Problem)
	case ctx.Err() != nil:
		return ctx.Err()
	case p.Status != http.StatusOK:
		return fmt.Errorf("no part of the page could be read: %s", p.Events[0].Error)
	case err != nil:
	case name == "-":
		_, err = fmt.Fprint(s.Out, text.String())
	default:
		err = os.WriteFile(name, []byte(text.String()), 0o600)
	}
	if failed := p.Failed.Load(); err == nil && failed > 0 {
		return &program.Exit{Code: program.Partly, Err: fmt.Errorf("%d of %d parts could not be read", failed, p.Asked.Load())}
	}
	return err
}

// serve serves until the context ends, and with it the pages that are being made.
func serve(ctx context.Context, address string, pages http.Handler, s program.Streams) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: time.Second}
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(s.Out, "The dashboard is at http://%s/, and stops on ^C.\n", listener.Addr())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
