package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// pattern is a URI of TestFatesOfURIs: the service rejects x and accepts the others.
func pattern(name rune) webdelivery.PurgeURI {
	if name == 'x' {
		return webdelivery.Exact("https://www.example.org/x")
	}
	return webdelivery.Exact("https://www.example.com/" + string(name))
}

// Each URI has an outcome of its own, and a caller's error names those of its URIs that were not purged, and no
// others. x and 2, 3, 4 of two callers are sent as 23x4, which the service rejects, then as 23, x and 4.
func TestFatesOfURIs(t *testing.T) {
	t.Parallel()
	type fate struct {
		uris    string // of the call
		leaves  time.Duration
		named   string // "": no error
		outcome webdelivery.Outcome
		is      []error
		receipt bool
	}
	refused, server := webdelivery.ErrBadRequest, webdelivery.ErrServer
	tests := []struct {
		name    string
		options webdelivery.QueueOptions
		lost    string   // the URIs of the request whose outcome is unknown
		ended   []string // statuses of the transactions, in the order of the accepted requests
		fates   []fate
		badly   string // the callers who get an error of a transaction
	}{
		{name: "one is rejected", fates: []fate{
			{uris: "23x4", named: "x", outcome: unknown, is: []error{refused}, receipt: true},
			{uris: "24", receipt: true},
		}},
		{name: "one is rejected, and the transactions end well", options: webdelivery.QueueOptions{Wait: true}, fates: []fate{
			{uris: "23x4", named: "x", outcome: unknown, is: []error{refused}, receipt: true},
			{uris: "24", receipt: true},
		}},
		{name: "the last transaction ends badly", options: webdelivery.QueueOptions{Wait: true}, ended: []string{"DONE", "FAILED"}, badly: "01", fates: []fate{
			{uris: "23x4", named: "x4", outcome: unknown, is: []error{refused}, receipt: true},
			{uris: "24", named: "4", outcome: unknown, receipt: true},
			{uris: "2", receipt: true},
		}},
		{name: "the first transaction ends badly", options: webdelivery.QueueOptions{Wait: true}, ended: []string{"FAILED", "DONE"}, badly: "02", fates: []fate{
			{uris: "23x4", named: "23x", outcome: unknown, is: []error{refused}, receipt: true},
			{uris: "4", receipt: true},
			{uris: "2", named: "2", outcome: unknown, receipt: true},
		}},
		{name: "the last request is lost", lost: "4", fates: []fate{
			{uris: "23x4", named: "x4", outcome: unknown, is: []error{refused, server}, receipt: true},
			{uris: "24", named: "4", outcome: unknown, is: []error{server}, receipt: true},
			{uris: "x", named: "x", outcome: not, is: []error{refused}},
		}},
		{name: "the last request is lost, and the transaction ends badly", options: webdelivery.QueueOptions{Wait: true}, lost: "4", ended: []string{"FAILED"}, badly: "01", fates: []fate{
			{uris: "23x4", named: "23x4", outcome: unknown, is: []error{refused, server}, receipt: true},
			{uris: "24", named: "24", outcome: unknown, is: []error{server}, receipt: true},
			{uris: "4", named: "4", outcome: unknown, is: []error{server}},
		}},
		{name: "the second request is lost", lost: "23", fates: []fate{
			{uris: "23x4", named: "23x", outcome: unknown, is: []error{refused, server}, receipt: true},
			{uris: "4", receipt: true},
		}},
		// 2x345, 2x, 2, x, and after 1.5 s 345.
		{name: "callers leave before the last request", fates: []fate{
			{uris: "2x345", named: "x", outcome: unknown, is: []error{refused}, receipt: true},
			{uris: "24", leaves: 1500 * time.Millisecond, named: "4", outcome: unknown, is: []error{context.DeadlineExceeded}, receipt: true},
			{uris: "x4", leaves: 1500 * time.Millisecond, named: "x4", outcome: unknown, is: []error{refused, context.DeadlineExceeded}},
			{uris: "2", leaves: 1500 * time.Millisecond, receipt: true},
		}},
		{name: "callers leave while a transaction is pending", options: webdelivery.QueueOptions{Wait: true}, ended: []string{"DONE", "PENDING"}, fates: []fate{
			{uris: "23x4", leaves: time.Minute, named: "x4", outcome: unknown, is: []error{refused, context.DeadlineExceeded}, receipt: true},
			{uris: "24", leaves: time.Minute, named: "4", outcome: unknown, is: []error{context.DeadlineExceeded}, receipt: true},
			{uris: "2", receipt: true},
		}},
		{name: "one URI in two requests", options: webdelivery.QueueOptions{MaxURIs: 2}, lost: "12", fates: []fate{
			{uris: "12", named: "12", outcome: unknown, is: []error{server}},
			{uris: "23", receipt: true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				for _, word := range tt.ended {
					f.srv.FailTransactions(1, word, "", 0)
				}
				if tt.lost != "" {
					f.http.Transport = losing(t, f.http.Transport, tt.lost)
				}
				q, err := f.newClient(f.srv.URL(), setup{}).Purge.NewQueue(tt.options) // with the transport from above
				require.NoError(f, err)
				var wg sync.WaitGroup
				for i, want := range tt.fates {
					var uris []webdelivery.PurgeURI
					for _, name := range want.uris {
						uris = append(uris, pattern(name))
					}
					ctx, cancel := f.Context(), context.CancelFunc(func() {})
					if want.leaves > 0 {
						ctx, cancel = context.WithTimeout(ctx, want.leaves)
					}
					defer cancel()
					wg.Go(func() {
						receipt, err := q.Purge(ctx, uris...)
						who := fmt.Sprint("caller ", i)
						assert.Equal(f, want.receipt, receipt != nil, who)
						if want.named == "" {
							assert.NoError(f, err, who)
							return
						}
						var e *webdelivery.QueueError
						if !assert.ErrorAs(f, err, &e, who) {
							return
						}
						var named []webdelivery.PurgeURI
						for _, name := range want.named {
							named = append(named, pattern(name))
						}
						assert.Equal(f, named, e.URIs, who)
						assert.Equal(f, want.outcome, webdelivery.OutcomeOf(err), who)
						for _, target := range []error{refused, server, context.DeadlineExceeded} {
							assert.Equal(f, slices.Contains(want.is, target), errors.Is(err, target), "%s: %v in %v", who, target, err)
						}
						_, badly := errors.AsType[*webdelivery.TransactionError](err)
						assert.Equal(f, strings.Contains(tt.badly, fmt.Sprint(i)), badly, who)
					})
					synctest.Wait() // so that the URIs are queued in this order
				}
				wg.Wait()
				require.NoError(f, q.Close(f.Context()))
			})
		})
	}
}

// losing is a transport that answers the request with these URIs with a status that is not retried, and that leaves
// the outcome unknown.
func losing(t *testing.T, next http.RoundTripper, names string) http.RoundTripper {
	t.Helper()
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost {
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		for _, name := range "x1234" {
			if strings.Contains(string(body), `"`+pattern(name).URIPattern+`"`) != strings.ContainsRune(names, name) {
				return next.RoundTrip(r)
			}
		}
		return &http.Response{StatusCode: http.StatusNotImplemented, Body: http.NoBody}, nil
	})
}

// A queue that waits for transactions polls 4 of them at a time, however many there are and however long a poll
// takes.
func TestLooksOfAQueueAreBounded(t *testing.T) {
	t.Parallel()
	inQueue(t, setup{}, webdelivery.QueueOptions{Wait: true, MaxURIs: 1}, func(f *fixture, q *webdelivery.PurgeQueue) {
		var polling, most atomic.Int32
		f.fail(testserver.Fault{Path: "/transactions/*", Handler: func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), polling.Add(1)))
			defer polling.Add(-1)
			time.Sleep(10 * time.Second)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"code":200,"transaction_id":`+path.Base(r.URL.Path)+`,"transaction_response":{"transaction_status":"DONE"}}`)
		}})
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				_, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
				assert.NoError(f, err)
			})
		}
		wg.Wait()
		assert.EqualValues(f, 4, most.Load())
	})
}

// If every caller of a request has left, the request ends, as a Submit does when its context ends. If one caller
// stays, the request goes on.
func TestARequestThatEverybodyLeft(t *testing.T) {
	t.Parallel()
	for _, stays := range []bool{false, true} {
		inQueue(t, setup{}, webdelivery.QueueOptions{}, func(f *fixture, q *webdelivery.PurgeQueue) {
			f.fail(testserver.Fault{Path: "/cache/purge", Status: http.StatusServiceUnavailable})
			var wg sync.WaitGroup
			for i := range 10 {
				ctx, cancel := context.WithTimeout(f.Context(), time.Second)
				defer cancel()
				if stays && i == 0 {
					ctx = f.Context()
				}
				wg.Go(func() {
					_, err := q.Purge(ctx, webdelivery.Exact(object(i)))
					assert.Error(f, err)
				})
			}
			time.Sleep(time.Second)
			synctest.Wait()
			before := len(f.arrivals())
			time.Sleep(time.Minute)
			assert.Equal(f, stays, len(f.arrivals()) > before)
			wg.Wait()
		})
	}
}
