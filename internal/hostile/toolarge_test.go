package hostile

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go"
)

// A gateway refuses a request that is too large as soon as it has read the header, and closes the connection. The queue
// halves the request all the same.
func TestTooLargeByItsHeader(t *testing.T) {
	t.Parallel()
	var accepted, refused atomic.Int64
	server := startRaw(t, func(conn net.Conn, _ int) {
		r := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if req.ContentLength > 1<<20 {
				refused.Add(1)
				_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			body := fmt.Sprintf(`{"code":201,"transaction_id":%d}`, accepted.Add(1))
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	queue, err := client(t, "http://"+server.addr, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 20}), // the reset may win
		webdelivery.WithPurgeLimiter(rate.NewLimiter(rate.Inf, 1))).Purge.NewQueue(webdelivery.QueueOptions{})
	require.NoError(t, err)
	var uris []webdelivery.PurgeURI
	for i := range 300 {
		uris = append(uris, webdelivery.Exact(fmt.Sprintf("https://www.example.com/%d/%s", i, strings.Repeat("a", 13_000))))
	}
	receipts, err := queue.Purge(t.Context(), uris...)
	require.NoError(t, err)
	assert.Len(t, receipts, 4, "halves of halves of 3.9 MB")
	require.NoError(t, queue.Close(t.Context()))
	assert.GreaterOrEqual(t, refused.Load(), int64(2))
}
