package redisqueue_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// The pages of errors show the texts of this package: each row is an error here, and each error here has a row.
func TestPagesHaveTheTexts(t *testing.T) {
	t.Parallel()
	service := webdeliverytest.NewServer(t)
	auth := webdelivery.BasicAuth(service.Username, service.Password)
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := service.NewClient(auth, webdelivery.WithPurgeLimiter(late{}))
	require.NoError(t, err)
	alone, err := service.NewClient(auth)
	require.NoError(t, err)
	_, noLimiter := redisqueue.New(rdb, alone, redisqueue.Options{})
	down, err := redisqueue.New(rdb, client, redisqueue.Options{Lease: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, down.Close(context.Background())) })
	_, noPurge := down.Purge(t.Context(), object(1))
	_, noResult := down.Result(t.Context(), "1")
	full := &webdelivery.QueueError{URIs: []webdelivery.PurgeURI{object(1)}, Err: redisqueue.ErrFull}

	for page, errs := range map[string][]error{
		"../docs/errors.md": {redisqueue.ErrFull, redisqueue.ErrPending, redisqueue.ErrUnknownID, redisqueue.ErrRedis},
		"../docs/troubleshooting.md": {
			noPurge, noResult, redisqueue.ErrPending, redisqueue.ErrUnknownID, full, noLimiter,
		},
	} {
		rows := textsOf(t, page)
		for _, err := range errs {
			row := ""
			for text, pattern := range rows {
				if pattern.MatchString(err.Error()) {
					row = text
				}
			}
			assert.NotEmpty(t, row, "%s lacks %s", page, err)
			delete(rows, row)
		}
		assert.Empty(t, rows, "%s: no error here has these texts", page)
	}
}

// textsOf returns the texts of a page that are about this package. "…" stands for anything.
func textsOf(t *testing.T, page string) map[string]*regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	found := map[string]*regexp.Regexp{}
	for _, cell := range regexp.MustCompile("`([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(cell[1], "redisqueue: ") || strings.Contains(cell[1], "processes share") {
			found[cell[1]] = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(cell[1]), "…", ".*") + "$")
		}
	}
	require.NotEmpty(t, found, page)
	return found
}

// The package page has at most 500 words.
func TestThePackagePageIsShort(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	assert.LessOrEqual(t, len(strings.Fields(strings.ReplaceAll(string(page), "//", ""))), 500)
}

// What a process writes, any other reads. A result that nobody can read is an unknown outcome.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q := w.process()
		_, err := q.Purge(w.soon(), object(1))
		require.NoError(w, err)
		base := strings.TrimSuffix(w.stream(), "calls")
		require.NoError(w, w.admin().Set(w.Context(), base+"result:x", "?", 0).Err())
		_, err = q.Result(w.soon(), "x")
		assert.ErrorContains(w, err, "unreadable")
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))

		add := &redis.XAddArgs{Stream: w.stream(), Values: []string{"r", "/y", "u", "?"}}
		require.NoError(w, w.admin().Set(w.Context(), base+"result:y", "", 0).Err())
		require.NoError(w, w.admin().XAdd(w.Context(), add).Err())
		_, err = w.result(q, "y")
		_, remote := errors.AsType[*redisqueue.RemoteError](err)
		assert.True(w, remote, "%v", err)
		assert.ErrorContains(w, err, "unreadable")
	})
}
