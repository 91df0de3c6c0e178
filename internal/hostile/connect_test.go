package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

const (
	proxyPassword = "proxy-secret-pw"
	proxyUser     = "bob:" + proxyPassword
)

// secretsOfProxy are the forms of the proxy's credentials on the wire.
var secretsOfProxy = []string{proxyPassword, base64.StdEncoding.EncodeToString([]byte(proxyUser))}

// connectProxy returns a proxy. It calls answer for each CONNECT, with whether it opens a tunnel. The tunnel goes to
// the address that answer returns. If that is "", answer has already written its response.
func connectProxy(answer func(conn net.Conn, req *http.Request) (target string)) func(net.Conn, int) {
	return func(conn net.Conn, _ int) {
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		target := answer(conn, req)
		if target == "" {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
		if err != nil {
			return
		}
		defer server.Close()
		if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.Copy(server, r)
			_ = server.Close()
		})
		both.Go(func() {
			_, _ = io.Copy(conn, server)
			_ = conn.Close()
		})
		both.Wait()
	}
}

// says returns a function that writes a response to CONNECT, after which the connection ends.
func says(text string) func(net.Conn, *http.Request) string {
	return func(conn net.Conn, _ *http.Request) string {
		_, _ = io.WriteString(conn, text)
		return ""
	}
}

// A proxy of the environment does not connect. Nothing was sent, so every call is retried, unless the refusal is
// permanent. Whatever the proxy sends, no error and no log shows its password.
func TestProxiesThatDoNotConnect(t *testing.T) {
	t.Parallel()
	echo := strings.Join(append([]string{proxyUser}, secretsOfProxy...), " ")
	for _, s := range []struct {
		name   string
		answer func(net.Conn, *http.Request) string
		final  bool
		says   string
	}{
		{"asks for credentials", says("HTTP/1.1 407 " + echo + "\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n"), true, "407 Proxy Authentication Required"},
		{"refuses", says("HTTP/1.1 403 " + echo + "\r\n\r\n" + echo), true, "403 Forbidden"},
		{"redirects", says("HTTP/1.1 302 Found\r\nLocation: https://evil.example.com/\r\n\r\n"), true, "302 Found"},
		{"cannot reach the service", says("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\n<html"), false, "502 Bad Gateway"},
		{"is too busy", says("HTTP/1.1 429 " + echo + "\r\nRetry-After: 1\r\n\r\n"), false, "429 Too Many Requests"},
		{"closes", says(""), false, ""},
		{"speaks no HTTP", says("hello\r\n\r\n"), false, ""},
		{"connects and closes", says("HTTP/1.1 200 OK\r\n\r\n"), false, ""},
		{"never answers", func(conn net.Conn, _ *http.Request) string {
			_, _ = io.Copy(io.Discard, conn)
			return ""
		}, false, "no connection within 300ms"},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			proxy := startRaw(t, connectProxy(s.answer))
			timeout := "10s"
			if strings.Contains(s.says, "300ms") {
				timeout = "300ms"
			}
			attempts := map[string]int{"read": 4, "purge": 4, "write": 3}
			total := 0
			for _, r := range callers(t, "HTTPS_PROXY=http://"+proxyUser+"@"+proxy.addr, callerBase+"=https://service.example.com", callerTimeout+"="+timeout) {
				want := attempts[r.Kind]
				if s.final {
					want = 1
				}
				total += want
				assert.Equal(t, want, r.Attempts, "%s: %s", r.Kind, r.Error)
				assert.Equal(t, webdelivery.OutcomeNotApplied.String(), r.Outcome, "%s: %s", r.Kind, r.Error)
				assert.Contains(t, r.Error, s.says, r.Kind)
				assert.NotEmpty(t, r.Log)
				for _, secret := range secretsOfProxy {
					assert.NotContains(t, r.Error+r.Log, secret, r.Kind)
				}
			}
			assert.Equal(t, int64(total), proxy.accepted.Load(), "connections")
		})
	}
}

// HTTP/2 through a proxy that requires credentials. Only the proxy gets its credentials, and only the service gets the
// service's. Hosts in NO_PROXY are reached directly.
func TestProxiesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	trusted := newAuthority(t)
	var mu sync.Mutex
	var seen []*http.Request
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{trusted.issue(t, nil)}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
	})
	require.NoError(t, err)
	service := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.Header().Set("Content-Type", "application/json")
		status, body := Action("").response(1)
		if r.Method == http.MethodGet {
			status, body = http.StatusOK, taskBody("t-1")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})}
	go func() { _ = service.Serve(listener) }()
	defer service.Close()
	proxy := startRaw(t, connectProxy(func(_ net.Conn, r *http.Request) string {
		note(r)
		return listener.Addr().String()
	}))

	through := "HTTPS_PROXY=http://" + proxyUser + "@" + proxy.addr
	for _, r := range callers(t, through, callerBase+"=https://service.example.com", "SSL_CERT_FILE="+trusted.file(t)) {
		assert.Empty(t, r.Error, r.Kind)
	}
	require.Len(t, seen, 1+len(kinds), "one connection for all")
	connect := seen[0]
	assert.Equal(t, http.MethodConnect, connect.Method)
	assert.Equal(t, "service.example.com:443", connect.Host)
	assert.Equal(t, "Basic "+secretsOfProxy[1], connect.Header.Get("Proxy-Authorization"))
	assert.Empty(t, connect.Header.Get("Authorization"))
	for _, r := range seen[1:] {
		assert.Equal(t, 2, r.ProtoMajor)
		assert.Empty(t, r.Header.Get("Proxy-Authorization"))
		assert.NotEmpty(t, r.Header.Get("Authorization"))
	}

	before := proxy.accepted.Load()
	for _, r := range callers(t, through, "NO_PROXY=192.0.2.0/24", callerBase+"=https://192.0.2.1", callerTimeout+"=200ms") {
		assert.Equal(t, webdelivery.OutcomeNotApplied.String(), r.Outcome, r.Kind)
	}
	assert.Equal(t, before, proxy.accepted.Load(), "connections of the proxy")
}

// A proxy that connects slowly does not bring purges together: of any three arrivals, the first and the third are at
// least a second apart.
func TestPaceThroughASlowProxy(t *testing.T) {
	t.Parallel()
	for _, protocol := range []Protocol{HTTP1TLS, HTTP2} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			slow := newDelays(900*ms, 0, 450*ms, 1200*ms, 100*ms, 650*ms, 20*ms, 300*ms)
			proxy := startRaw(t, connectProxy(func(_ net.Conn, r *http.Request) string {
				slow.wait()
				return r.Host
			}))
			o := run(t, scenario{
				name: "slow proxy", plan: Plan{Protocol: protocol}, purges: 8,
				transport: func(tr *http.Transport) {
					tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy.addr})
					tr.DisableKeepAlives = true
				},
			})
			o.checkPace(t)
			o.checkNothingAdded(t)
			assert.Positive(t, proxy.accepted.Load())
		})
	}
}
