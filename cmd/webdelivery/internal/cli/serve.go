package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve serves on the address of --listen until the context ends. First it prints the text, which has a %s for the URL.
func (a *App) Serve(ctx context.Context, listen string, handler http.Handler, text string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return Advise(fmt.Errorf("--listen %s: %w", listen, failed.Err), "use another --listen: 127.0.0.1:0 takes a free port")
	}
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(a.Out, text+"\n", "http://"+listener.Addr().String())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
