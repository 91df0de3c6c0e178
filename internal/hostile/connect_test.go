package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

const (
	proxyPassword = "proxy-secret-pw"
	never         = "never"
)

// atProxy gets the connections of the proxy of the environment, which net/http reads only once in a process.
var atProxy = make(chan net.Conn)

// startProxy is the proxy of the environment, for all addresses but loopback.
func startProxy() {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("HTTPS_PROXY", "http://bob:"+proxyPassword+"@"+listener.Addr().String()); err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			atProxy <- conn
		}
	}()
}

// A proxy does not connect. Nothing was sent, so every call is retried, unless the refusal is permanent. Whatever the
// proxy sends, no error and no log shows its password.
func TestProxiesThatDoNotConnect(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("bob:" + proxyPassword))
	echo := "bob:" + proxyPassword + " " + basic
	type service struct {
		host, answer string
		final        bool
		says         string
		connections  atomic.Int64
	}
	services := []*service{
		{host: "asks-for-credentials.example.com", answer: "HTTP/1.1 407 " + echo + "\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n", final: true, says: "407 Proxy Authentication Required"},
		{host: "refuses.example.com", answer: "HTTP/1.1 403 " + echo + "\r\n\r\n" + echo, final: true, says: "403 Forbidden"},
		{host: "redirects.example.com", answer: "HTTP/1.1 302 Found\r\nLocation: https://evil.example.com/\r\n\r\n", final: true, says: "302 Found"},
		{host: "cannot-reach-the-service.example.com", answer: "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\n<html", says: "502 Bad Gateway"},
		{host: "is-too-busy.example.com", answer: "HTTP/1.1 429 " + echo + "\r\nRetry-After: 1\r\n\r\n", says: "429 Too Many Requests"},
		{host: "closes.example.com"},
		{host: "speaks-no-http.example.com", answer: "hello\r\n\r\n"},
		{host: "connects-and-closes.example.com", answer: "HTTP/1.1 200 OK\r\n\r\n"},
		{host: "never-answers.example.com", answer: never, says: "no connection within 300ms"},
	}
	go func() {
		for conn := range atProxy {
			go func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				s := services[slices.IndexFunc(services, func(s *service) bool { return s.host+":443" == req.Host })]
				s.connections.Add(1)
				if s.answer == never {
					_, _ = io.Copy(io.Discard, conn)
				} else {
					_, _ = io.WriteString(conn, s.answer)
				}
			}()
		}
	}()
	for _, s := range services {
		t.Run(s.host, func(t *testing.T) {
			t.Parallel()
			timeout := 10 * time.Second
			if s.answer == never {
				timeout = 300 * time.Millisecond
			}
			var log bytes.Buffer
			c := client(t, "https://"+s.host, quick(nil, webdelivery.WithAttemptTimeout(timeout),
				webdelivery.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))...)
			total := 0
			for _, k := range kinds {
				err := k.call(bounded(t), c)
				want := map[string]int{"read": 4, "purge": 4, "write": 3}[k.name]
				if s.final {
					want = 1
				}
				total += want
				assert.Equal(t, want, attemptsOf(err), "%s: %v", k.name, err)
				assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "%s: %v", k.name, err)
				assert.ErrorContains(t, err, s.says, k.name)
				told := fmt.Sprintf("%v %+v %#v", err, err, err) + log.String()
				assert.NotContains(t, told, proxyPassword, k.name)
				assert.NotContains(t, told, basic, k.name)
			}
			assert.NotEmpty(t, log.String())
			if s.answer == never { // on a busy machine, an attempt may end before its request is read
				assert.LessOrEqual(t, s.connections.Load(), int64(total), "connections")
				return
			}
			assert.Equal(t, int64(total), s.connections.Load(), "connections")
		})
	}
}
