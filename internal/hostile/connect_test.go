package hostile

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

const proxyPassword = "proxy-secret-pw"

// atProxy gets the connections of the proxy of the environment.
var atProxy net.Listener

// A proxy does not connect. Nothing was sent, so every call is retried, unless the refusal is permanent. Whatever the
// proxy sends, no error and no log shows its password.
func TestProxiesThatDoNotConnect(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("bob:" + proxyPassword))
	services := map[string]struct {
		answer string
		final  bool
		says   string
	}{
		"asks-for-credentials.example.com": {"HTTP/1.1 407 bob:" + proxyPassword + " " + basic + "\r\nContent-Length: 0\r\n\r\n", true, "407 Proxy Authentication Required"},
		"is-down.example.com":              {"HTTP/1.1 502 bob:" + proxyPassword + "\r\nContent-Length: 5\r\n\r\n<html", false, "502 Bad Gateway"},
		"connects-and-closes.example.com":  {"HTTP/1.1 200 OK\r\n\r\n", false, ""},
	}
	go func() {
		for {
			conn, err := atProxy.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, services[req.URL.Hostname()].answer)
			}()
		}
	}()
	for host, s := range services {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			c := client(t, "https://"+host, nil, webdelivery.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			for k, attempts := range map[*kind]int{&read: 4, &purge: 4, &write: 3} {
				if s.final {
					attempts = 1
				}
				err := k.call(t.Context(), c)
				assert.Equal(t, attempts, attemptsOf(err), "%s: %v", k.name, err)
				assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "%s: %v", k.name, err)
				assert.ErrorContains(t, err, s.says, k.name)
				told := fmt.Sprintf("%v %+v %#v", err, err, err) + log.String()
				assert.NotContains(t, told, proxyPassword, k.name)
				assert.NotContains(t, told, basic, k.name)
			}
			assert.NotEmpty(t, log.String())
		})
	}
}
