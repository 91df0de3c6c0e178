package webdelivery_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// When an attempt ends, in whatever way, the context of its request has ended too.
func TestAnAttemptEndsItsContext(t *testing.T) {
	t.Parallel()
	task := func(c *webdelivery.Client) error {
		_, err := c.Tasks.Get(t.Context(), fixture.TaskID)
		return err
	}
	tests := []struct {
		name   string
		status int
		body   string
		call   func(*webdelivery.Client) error
		fails  bool
	}{
		{"a response", http.StatusOK, `{"id":"task-1"}`, task, false},
		{"a refusal", http.StatusNotFound, `{}`, task, true},
		{"a stream read to its end", http.StatusOK, resultOf([]string{"a"}, `[1]`, `[2]`), func(c *webdelivery.Client) error {
			rows, err := collect(c.Stats.Events.All(t.Context(), fixture.FirstRows))
			assert.Len(t, rows, 2)
			return err
		}, false},
		{"a stream left early", http.StatusOK, resultOf([]string{"a"}, `[1]`, `[2]`), func(c *webdelivery.Client) error {
			for _, err := range c.Stats.Events.All(t.Context(), fixture.FirstRows) {
				return err
			}
			return errors.New("no row")
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var attempt context.Context
			client := fixture.Answered(t, func(r *http.Request) *http.Response {
				attempt = r.Context()
				assert.NoError(t, attempt.Err())
				return fixture.Response(tt.status, []byte(tt.body))
			})
			assert.Equal(t, tt.fails, tt.call(client) != nil)
			assert.ErrorIs(t, attempt.Err(), context.Canceled)
		})
	}
}

// closing counts how often it is closed.
type closing struct {
	io.Reader
	times int
}

func (c *closing) Close() error {
	c.times++
	return nil
}

// Whatever the status, the client closes the body, so that the connection can be used again. A final status below 200
// is an error.
func TestEveryBodyIsClosed(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		101: webdelivery.ErrBadResponse, 200: nil, 300: webdelivery.ErrBadResponse, 404: webdelivery.ErrNotFound, 503: webdelivery.ErrServer,
	} {
		body := &closing{Reader: strings.NewReader(`{"id":"task-1"}`)}
		client := fixture.Answered(t, func(*http.Request) *http.Response {
			r := fixture.Response(status, nil)
			r.Body = body
			return r
		})
		_, err := client.Tasks.Get(t.Context(), fixture.TaskID)
		require.ErrorIs(t, err, want, "%d", status)
		assert.Equal(t, 1, body.times, "%d", status)
	}
}
