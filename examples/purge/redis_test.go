package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// freeAddress returns a loopback address where nobody listens.
func freeAddress(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().(*net.TCPAddr)
}

// purges runs the program, which must end with a code.
func purges(t *testing.T, want int, args ...string) outcome {
	t.Helper()
	got := finish(func(s program.Streams) error { return run(t.Context(), args, s) })
	assert.Equal(t, want, got.code, got.err)
	return got
}

// startRedis starts a redis-server that ends with the test, and returns its address.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" {
			require.NoError(t, err)
		}
		t.Skip("redis-server is not on PATH")
	}
	address := freeAddress(t)
	args = append([]string{"--bind", "127.0.0.1", "--save", "", "--port", strconv.Itoa(address.Port)}, args...)
	server := exec.CommandContext(t.Context(), "redis-server", args...)
	log, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Wait() }) // the context of the test ends before
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "Ready to accept connections") {
		t.Log(lines.Text())
	}
	return address.String()
}

// Processes with the same Redis share requests.
func TestOneQueueForManyProcesses(t *testing.T) { //nolint:paralleltest // the environment is the process's
	address := startRedis(t)
	srv := webdeliverytest.NewServer(t)
	programtest.UseService(t, srv)
	const processes = 20
	var running sync.WaitGroup
	for i := range processes {
		running.Go(func() {
			got := purges(t, program.Done, "-redis", "redis://"+address, fmt.Sprint("https://www.example.com/", i))
			assert.Regexp(t, `^\d+ SUBMITTED\n$`, got.out)
		})
	}
	running.Wait()
	assert.Len(t, slices.Concat(sent(srv)...), processes)
	assert.Less(t, srv.Count(http.MethodPost, "/cache/purge"), processes/2)
}

// That Redis is down is said once, before anything is sent or for all URIs together, and never about the service.
func TestRedisIsDown(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv := webdeliverytest.NewServer(t)
	programtest.UseService(t, srv)
	address := freeAddress(t).String()
	advice := "purge: check that Redis or Valkey is running at " + address + ", or purge without -redis\n"
	got := purges(t, program.Failed, "-redis", "redis://:secret@"+address, "https://www.example.com/a", "https://www.example.com/b")
	assert.Regexp(t, "^purge: -redis: dial tcp "+address+": .*\n"+advice+"$", got.err)
	assert.Empty(t, srv.Requests())

	got = finish(func(s program.Streams) error {
		j := &job{s: s, redis: address, redisFrom: "-redis"}
		down := fmt.Errorf("%w: no route", redisqueue.ErrRedis)
		require.Error(t, j.fail("https://www.example.com/a", down))
		require.Error(t, j.fail("https://www.example.com/b", down))
		j.stopped(errors.New("not all was read"))
		return program.Ended(0, j.errs...)
	})
	const line = "purge: \"https://www.example.com/%s\": unknown\n"
	assert.Equal(t, fmt.Sprintf(line+line, "a", "b")+"purge: -redis: redisqueue: Redis does not work: no route\n"+advice, got.err)
}

// The URL of Redis, and so its password, may come from the environment. A Redis that refuses is not one that is down.
func TestRedisURL(t *testing.T) {
	address := startRedis(t, "--requirepass", "secret", "--user", "poor", "on", ">poor", "~*", "+@all", "-xadd")
	srv := webdeliverytest.NewServer(t)
	programtest.UseService(t, srv)
	const uri = "https://www.example.com/a"
	t.Setenv("REDIS_URL", "redis://:secret@"+address)
	purges(t, program.Done, uri)
	t.Setenv("REDIS_URL", "redis://:wrong@"+address)
	purges(t, program.Done, "-redis", "redis://:secret@"+address, uri)
	require.Len(t, srv.Purged(), 2)

	for _, tt := range []struct{ url, why, advice string }{
		{"redis://:wrong@" + address, "WRONGPASS", "check the user name and the password in REDIS_URL"},
		{"redis://" + address, "NOAUTH", "check the user name and the password in REDIS_URL"},
		{"redis://poor:poor@" + address, "NOPERM", "grant the user in REDIS_URL the permissions that packages redislimit and redisqueue list"},
	} {
		t.Setenv("REDIS_URL", tt.url)
		got := purges(t, program.Failed, uri)
		assert.Regexp(t, "(?s)purge: REDIS_URL: .*"+tt.why+".*\npurge: "+tt.advice+"\n$", got.err)
		assert.NotContains(t, got.err, "wrong@")
	}
	t.Setenv("REDIS_URL", "http://:secret@"+address)
	got := purges(t, program.Misuse, uri)
	assert.Equal(t, "purge: REDIS_URL cannot be used; want a URL such as redis://redis.example.com:6379\n", got.err)
	assert.Len(t, srv.Purged(), 2)

	t.Setenv("REDIS_URL", "redis://"+freeAddress(t).String())
	purges(t, program.Done, "-resume", fmt.Sprint(srv.Purged()[0].TransactionID))
}
