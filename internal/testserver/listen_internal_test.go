package testserver

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The URL of a server that listens on all addresses has the loopback address.
func TestReachable(t *testing.T) {
	t.Parallel()
	for want, addr := range map[string]net.Addr{
		"127.0.0.1:80":   &net.TCPAddr{IP: net.IPv4zero, Port: 80},
		"127.0.0.1:81":   &net.TCPAddr{IP: net.IPv6unspecified, Port: 81},
		"192.0.2.1:82":   &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 82},
		"[2001:db8::]:1": &net.TCPAddr{IP: net.ParseIP("2001:db8::"), Port: 1},
	} {
		assert.Equal(t, want, reachable(addr))
	}
}
