// Dashboard shows the security statistics on a web page: trends, the largest values of each category, the latest
// events.
//
//	dashboard [-listen 127.0.0.1:8080]
//	dashboard -o report.html [-since 7d] [-filter 'client_country_code==CN;event_action!=WARN']
//
// It prints its address and serves the page to this computer until you interrupt it. The form on the page selects the
// time range and the filter. With -o it writes the page to one file; - is standard output. It reads for at most 15
// seconds. Parts that cannot be read by then are missing, and the page says why at the top.
//
// Exit codes: 0 done, 1 failed, nothing was written, 2 wrong usage, 3 written, but some parts are missing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/dashboard/report"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func main() { program.Main("dashboard", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.Flags("dashboard", file("main.go"), s)
	listen := set.String("listen", "127.0.0.1:8080", "loopback `address` to serve on; port 0 selects a free one")
	output := set.String("o", "", "`file` to write the page to, instead of serving it")
	var since program.Duration
	set.Var(&since, "since", "with -o: the time range, a `span` of this length until now, such as 30m, 12h or 7d (default 1d)")
	filter := set.String("filter", "", "with -o: `expression` in the service's syntax")
	if err := program.ParseAlone(set, args); err != nil {
		return err
	}
	switch {
	case program.IsSet(set, "o") && *output == "":
		return program.Misused("-o is empty: set the variable that it comes from, or remove it")
	case *output != "" && program.IsSet(set, "listen"):
		return program.Misused("there are -o and -listen: with -o nothing is served; give only one of them")
	case *output == "" && (program.IsSet(set, "since") || *filter != ""):
		return program.Misused("-since and -filter need -o; the page that is served has a form for them")
	case *output != "-" && program.Special(*output): // a new file would replace a device
		return program.Misused("-o: %s exists and is not a regular file", *output)
	case !isLoopback(*listen):
		return program.Misused("-listen: %q is not a loopback address with a port, and the page asks for no password; use 127.0.0.1:8080", *listen)
	}
	shown, stop, err := connect(s.Err)
	if err != nil {
		return err
	}
	defer stop()
	if *output == "" {
		return serve(ctx, *listen, handler(shown), s)
	}
	picked := url.Values{"filter": {*filter}}
	if program.IsSet(set, "since") {
		picked.Set("since", since.String())
	}
	return write(ctx, *output, newPage(ctx, shown, picked), s)
}

// site is the service and the customer that the page shows.
type site struct {
	Stats          *webdelivery.StatsService
	Customer, Host string
	Fake           bool
}

// connect connects to the service of the environment, or to a fake one with its own traffic.
func connect(stderr io.Writer) (s site, stop func(), err error) {
	baseURL := os.Getenv("WEBDELIVERY_BASE_URL")
	s.Customer = os.Getenv("WEBDELIVERY_CUSTOMER")
	service, err := program.Connect(stderr, nil, []webdeliverytest.Option{webdeliverytest.WithEvents(0.5, 7, time.Time{})},
		func(srv *webdeliverytest.Server) { s.Fake, s.Customer, baseURL = true, srv.Customer, srv.URL })
	if err != nil {
		return s, nil, err
	}
	s.Host, s.Stats = host(baseURL), service.Client.Stats
	return s, service.Close, nil
}

// host returns the host of a base URL, with its port.
func host(baseURL string) string {
	base, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return base.Host
}

// write writes a page to a file that only its owner can read: attacks are not public.
func write(ctx context.Context, name string, p *page, s program.Streams) error {
	var text strings.Builder
	p.Policy = policy
	err := pageTemplate.Execute(&text, p)
	switch {
	case p.Problem != nil:
		return program.Misused("%w", p.Problem)
	case ctx.Err() != nil:
		return ctx.Err()
	case p.Missing == p.Parts:
		return missing("no part of the page could be read", p.Faults)
	case err != nil:
	case name == "-":
		_, err = fmt.Fprint(s.Out, text.String())
	default:
		err = program.Replace(name, func(w io.Writer) error { _, err := io.WriteString(w, text.String()); return err })
	}
	if err == nil && p.Missing > 0 {
		return &program.Exit{Code: program.Partly, Err: missing(fmt.Sprintf("%d of %d parts could not be read", p.Missing, p.Parts), p.Faults)}
	}
	return err
}

// missing returns an error with a line per fault, and with all that can be done about them.
func missing(what string, faults []report.Fault) error {
	lines := []error{errors.New(what)}
	var advice []string
	for _, fault := range faults {
		parts := strings.Join(fault.Parts, ", ")
		if more := len(fault.Parts) - 3; more > 1 {
			parts = fmt.Sprintf("%s and %d more", strings.Join(fault.Parts[:3], ", "), more)
		}
		lines = append(lines, fmt.Errorf("%s: %s: %w", parts, fault.Summary, fault.Err))
		if fault.Advice != "" && !slices.Contains(advice, fault.Advice) {
			advice = append(advice, fault.Advice)
		}
	}
	return program.Advise(errors.Join(lines...), strings.Join(advice, " "))
}

// handler serves pages under local names only. With DNS rebinding, a foreign site could otherwise read them under its
// own name.
func handler(shown site) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "this page is for localhost", http.StatusMisdirectedRequest)
			return
		}
		// An address may contain a filter unescaped.
		picked, _ := url.ParseQuery(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"))
		p := newPage(r.Context(), shown, picked)
		w.Header().Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(p.Status)
		_ = pageTemplate.Execute(w, p)
	})
	return mux
}

// serve serves until the context ends. Pages in progress end with it.
func serve(ctx context.Context, address string, pages http.Handler, s program.Streams) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if network := new(net.OpError); errors.As(err, &network) {
		return program.Advise(fmt.Errorf("-listen %s: %w", address, network.Err), "use another -listen: 127.0.0.1:0 takes a free port")
	}
	if err != nil {
		return err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: time.Second}
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(s.Out, "The dashboard is at http://%s/ until you press ^C.\n", listener.Addr())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// isLoopback reports whether a host, with or without a port, is a name or address of this computer.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}
