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
			got := finish(func(s program.Streams) error {
				return run(t.Context(), []string{"-redis", "redis://" + address, fmt.Sprint("https://www.example.com/", i)}, s)
			})
			assert.Equal(t, program.Done, got.code, got.err)
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
	got := finish(func(s program.Streams) error {
		return run(t.Context(), []string{"-redis", "redis://:secret@" + address, "https://www.example.com/a", "https://www.example.com/b"}, s)
	})
	assert.Equal(t, program.Failed, got.code)
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
	purge := func(url string, args ...string) outcome {
		t.Setenv("REDIS_URL", url)
		return finish(func(s program.Streams) error { return run(t.Context(), append(args, "https://www.example.com/a"), s) })
	}
	got := purge("redis://:secret@" + address)
	assert.Equal(t, program.Done, got.code, got.err)
	got = purge("redis://:wrong@"+address, "-redis", "redis://:secret@"+address)
	assert.Equal(t, program.Done, got.code, got.err)
	require.Len(t, srv.Purged(), 2)

	for _, tt := range []struct{ url, why, advice string }{
		{"redis://:wrong@" + address, "WRONGPASS", "check the user name and the password in REDIS_URL"},
		{"redis://" + address, "NOAUTH", "check the user name and the password in REDIS_URL"},
		{"redis://poor:poor@" + address, "NOPERM", "grant the user in REDIS_URL the permissions that packages redislimit and redisqueue list"},
	} {
		got = purge(tt.url)
		assert.Equal(t, program.Failed, got.code)
		assert.Regexp(t, "(?s)purge: REDIS_URL: .*"+tt.why+".*\npurge: "+tt.advice+"\n$", got.err)
		assert.NotContains(t, got.err, "wrong@")
	}
	got = purge("http://:secret@" + address)
	assert.Equal(t, program.Misuse, got.code)
	assert.Equal(t, "purge: REDIS_URL cannot be used; want a URL such as redis://redis.example.com:6379\n", got.err)
	assert.Len(t, srv.Purged(), 2)

	t.Setenv("REDIS_URL", "redis://"+freeAddress(t).String())
	got = finish(func(s program.Streams) error {
		return run(t.Context(), []string{"-resume", strconv.FormatInt(srv.Purged()[0].TransactionID, 10)}, s)
	})
	assert.Equal(t, program.Done, got.code, got.err)
}
