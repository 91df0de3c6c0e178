package hostile

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// net/http reads the proxy of the environment only once in a process. It is for all addresses but loopback.
	var err error
	if atProxy, err = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		panic(err)
	}
	// The scenarios wait most of the time, so all of them run at once. A -parallel flag takes precedence.
	err = errors.Join(os.Setenv("HTTPS_PROXY", "http://bob:"+proxyPassword+"@"+atProxy.Addr().String()), flag.Set("test.parallel", "64"))
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
