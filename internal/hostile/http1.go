package hostile

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

type connectionKey struct{}

// http1Server returns a server of HTTP/1.1, over TLS if there is a certificate. A purge arrives when its head has been
// read: the handler runs then, before it reads the body.
func http1Server(arrivals *record, certificate *tls.Certificate) func(net.Listener) {
	handle := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/cache/purge") {
			http.NotFound(w, r)
			return
		}
		id, step := arrivals.arrive()
		reused := r.Context().Value(connectionKey{}).(*atomic.Bool).Swap(true)
		time.Sleep(step.After)
		if step.Action == CloseReused && reused {
			panic(http.ErrAbortHandler) // net/http closes the connection
		}
		_, _ = io.Copy(io.Discard, r.Body)
		status, body := step.Action.response(id)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(handle), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, new(atomic.Bool))
		},
	}
	if certificate == nil {
		return func(l net.Listener) { _ = server.Serve(l) }
	}
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
	return func(l net.Listener) { _ = server.ServeTLS(l, "", "") }
}
