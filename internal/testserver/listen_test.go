package testserver_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A server in memory has its own loopback address. Its transport reaches no other address.
func TestListenMemory(t *testing.T) {
	t.Parallel()
	one := start(t, testserver.Config{BasePath: "/root"})
	two := start(t, testserver.Config{})
	assert.Equal(t, one.URL(), one.ListenMemory(), "a server listens once")
	assert.Regexp(t, `^http://127\.1\.\d+\.\d+:8080/root$`, one.URL())
	assert.NotEqual(t, one.URL(), two.URL()+"/root")

	assert.Equal(t, 200, one.get("/tasks").status)
	_, err := one.try(http.MethodGet, two.URL()+"/acme/v1/tasks", "")
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	_, err = one.try(http.MethodGet, "https://evil.example.net/", "")
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	assert.Equal(t, 2, one.ForeignDials())
	assert.Empty(t, two.Requests())

	address, err := url.Parse(one.URL())
	require.NoError(t, err)
	conn, err := one.DialContext(t.Context(), "tcp", address.Host)
	require.NoError(t, err)
	assert.Equal(t, address.Host, conn.RemoteAddr().String())
	assert.Regexp(t, `^127\.0\.0\.1:\d+$`, conn.LocalAddr().String())
	require.NoError(t, conn.Close())
	_, err = conn.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err = one.DialContext(ctx, "tcp", address.Host); err == nil { // the listener may accept before the dial notices the end of ctx
		require.NoError(t, conn.Close())
	}
	require.NoError(t, one.Close())
	_, err = one.try(http.MethodGet, "/tasks", "")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// On TCP, any client reaches the same service.
func TestListenTCP(t *testing.T) {
	t.Parallel()
	s := testserver.New(testserver.Config{BasePath: "/root"})
	assert.Empty(t, s.URL())
	first, err := s.ListenTCP()
	require.NoError(t, err)
	again, err := s.ListenTCP()
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Equal(t, first, s.URL())
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/root$`, first)
	f := fake{Server: s, t: t, client: &http.Client{Transport: s.Transport()}}
	assert.Equal(t, 200, f.get("/tasks").status)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err = f.try(http.MethodGet, "/tasks", "")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = s.ListenTCP()
	require.ErrorIs(t, err, net.ErrClosed)
}

// A connection is counted until its end, or until a handler hijacks it.
func TestOpenConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t, testserver.Config{})
		f.get("/tasks")
		f.get("/tasks")
		assert.Equal(t, 1, f.OpenConnections(), "an idle connection is used again")
		f.client.CloseIdleConnections()
		synctest.Wait()
		assert.Zero(t, f.OpenConnections())

		f.Fail(testserver.Fault{Path: "/tasks", Delay: time.Minute, Count: 1})
		go func() {
			assert.Equal(t, 200, f.get("/tasks").status)
		}()
		synctest.Wait()
		assert.Equal(t, 1, f.OpenConnections(), "a request is under way")
		time.Sleep(time.Minute)
		synctest.Wait()
		f.Fail(testserver.Fault{Path: "/tasks", Handler: func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				assert.Zero(t, f.OpenConnections())
				assert.NoError(t, conn.Close())
			}
		}})
		_, err := f.try(http.MethodPost, "/tasks", "")
		require.Error(t, err)
		assert.Equal(t, 2, f.Connections())
	})
}

// Close ends delays, dribbles, handlers that wait for their context, and idle connections. A bubble fails if a
// goroutine remains.
func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t, testserver.Config{})
		f.Fail(testserver.Fault{Path: "/tasks", Delay: time.Hour})
		f.Fail(testserver.Fault{Path: "/cache/purge", Dribble: time.Hour})
		f.Fail(testserver.Fault{Path: "/sessions", Handler: func(_ http.ResponseWriter, r *http.Request) {
			assert.NotEmpty(t, f.URL(), "the server may be used meanwhile")
			<-r.Context().Done()
		}})
		var ended atomic.Int32
		for _, request := range []*http.Request{
			f.request(http.MethodGet, "/tasks", ""), f.request(http.MethodPost, "/cache/purge", onePurge),
			f.request(http.MethodPost, "/sessions", ""),
		} {
			go func() {
				resp, err := f.client.Do(request)
				if err == nil {
					_, err = resp.Body.Read(make([]byte, 1))
					err = errors.Join(err, resp.Body.Close())
				}
				assert.Error(t, err)
				ended.Add(1)
			}()
		}
		assert.Equal(t, 404, f.get("/nothing").status)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, f.Close())
		synctest.Wait()
		assert.Equal(t, int32(3), ended.Load())
		assert.Zero(t, time.Since(began))
	})
}

// Close may be called at any time and from any goroutine.
func TestCloseWhileInUse(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := f.try(http.MethodGet, "/tasks", ""); err != nil {
					return
				}
			}
			assert.NoError(t, f.Close())
		})
	}
	all.Wait()
}
