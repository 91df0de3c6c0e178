package redisqueue_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// The pages of errors show the texts of this package: each row is an error here, and each error here has a row.
func TestPagesHaveTheTexts(t *testing.T) {
	t.Parallel()
	rdb, client, stop := withoutRedis()
	t.Cleanup(stop)
	alone, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"))
	require.NoError(t, err)
	purge := func(q *redisqueue.Queue) error {
		_, err := q.Purge(t.Context(), object(1))
		return err
	}
	down := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme"})
	t.Cleanup(func() { assert.NoError(t, down.Close(t.Context())) })
	_, noResult := down.Result(t.Context(), "1-1")

	for page, errs := range map[string][]error{
		"../docs/errors.md": {redisqueue.ErrFull, redisqueue.ErrPending, redisqueue.ErrUnknownID},
		"../docs/troubleshooting.md": {
			purge(down), noResult, redisqueue.ErrPending, redisqueue.ErrUnknownID,
			&webdelivery.QueueError{URIs: []webdelivery.PurgeURI{object(1)}, Err: redisqueue.ErrFull},
			purge(redisqueue.New(rdb, alone, redisqueue.Options{Name: "acme"})),
		},
	} {
		rows := textsOf(t, page)
		used := map[string]bool{}
		for _, err := range errs {
			require.Error(t, err)
			found := false
			for row, pattern := range rows {
				if pattern.MatchString(err.Error()) {
					found, used[row] = true, true
				}
			}
			assert.True(t, found, "%s lacks %s", page, err)
		}
		for row := range rows {
			assert.True(t, used[row], "%s: no error here has the text %s", page, row)
		}
	}
}

// textsOf returns the texts of a page that are about this package: cells that are code and name it, or the client that
// it needs. "…" stands for anything.
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
