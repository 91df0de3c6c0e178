package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// connect creates a client from the environment or, with --fake, of a fake service, which ends with the process.
func (a *App) connect(options ...webdelivery.Option) (*webdelivery.Client, error) {
	if !a.fake {
		client, err := webdelivery.NewClientFromEnv(options...)
		if errors.Is(err, webdelivery.ErrInvalid) {
			err = Advise(err, "webdelivery --help lists the settings; to try a command without a service, add --fake")
		}
		return client, err
	}
	srv, err := webdeliverytest.Start(webdeliverytest.WithEvents(1, 1, time.Time{}))
	if err != nil {
		return nil, err
	}
	Fill(srv)
	a.Tell("--fake: this is a fake service; nothing real happens")
	return srv.NewClient(webdelivery.SessionAuth(srv.Username, srv.Password), options...)
}

// Fake reports whether the command uses a fake service.
func (a *App) Fake() bool { return a.fake }

// Fill adds tasks and lists to a fake service.
func Fill(srv *webdeliverytest.Server) {
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "deploy-property"})
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "deploy-property", Error: &webdeliverytest.TaskError{
		Type: "ConfigError", Message: "origin unknown", Details: []string{"origin.example.com has no address"},
	}})
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "export-logs", Duration: 5 * time.Second})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Type: webdelivery.ListTypeGEO, Name: "embargo", Description: "countries that are not served", Entries: []string{"KP", "SY"},
	})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Name: "blocklist", Description: "addresses that are blocked",
		Entries: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.0/25", "2001:db8:bad::/48"},
	})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Name: "office", Description: "addresses that no rule blocks",
		Entries: []string{"192.0.2.1", "198.51.100.0/24", "2001:db8::/32"},
	})
}

// Listen listens on the address of a flag.
func Listen(ctx context.Context, flag, address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return nil, Misused("%s: %w; write it like 127.0.0.1:8080", flag, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", flag, address, errors.Unwrap(err)) // without the address again
		return nil, Advise(err, "use another "+flag+": 127.0.0.1:0 takes a free port")
	}
	return listener, nil
}

// Serve serves on the address of --listen until the context ends. First it prints the text, which has a %s for the URL.
func (a *App) Serve(ctx context.Context, listen string, handler http.Handler, text string) error {
	listener, err := Listen(ctx, "--listen", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(a.Out, text+"\n", "http://"+listener.Addr().String())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// Loopback reports whether a host, with or without a port, is a name or address of this computer.
func Loopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}
