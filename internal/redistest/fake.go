package redistest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// Fake starts a server that knows only evalsha. answer gets what has arrived with a script. It returns the answer, or
// "" to close the connection without one.
func Fake(t *testing.T, answer func(request []byte) string) (addr string) {
	t.Helper()
	return listen(t, func(conn net.Conn) {
		defer conn.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			// the handshake: several commands may come at once
			response := strings.Repeat("-ERR unknown command\r\n", bytes.Count(buf[:n], []byte("*")))
			if bytes.Contains(buf[:n], []byte("evalsha")) {
				response = answer(buf[:n])
			}
			if response == "" {
				return
			}
			if _, err := io.WriteString(conn, response); err != nil {
				return
			}
		}
	})
}
