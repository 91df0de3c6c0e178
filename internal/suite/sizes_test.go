package suite_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// sized are operations of each kind by how they read a response: all except rows read it whole.
var sized = []string{
	"Tasks.Get", "Purge.Submit", "Do POST", "Sessions.Create", "Stats.Events.Query", "NetworkLists.AllEntries with ReadAhead",
	"NetworkLists.AddEntries", "Stats.Events.All with a limit",
}

// aCap limits a response that is read whole, and each value of a stream.
const aCap = 64 << 10

// slack is how much the buffers on the way may hold beyond what a client has read.
const slack = 64 << 10

// ever is how many bytes an endless response has, for clients without a limit.
const ever = 64 << 20

// endless sends a beginning and then the same text for ever, and counts the bytes that the client took.
func endless(taken *atomic.Int64, begin, repeat string) http.HandlerFunc {
	const atOnce = 1 << 10
	block := strings.Repeat(repeat, max(1, atOnce/len(repeat)))
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		for text := begin; ; text = block {
			n, err := io.WriteString(w, text)
			if taken.Add(int64(n)) > ever || err != nil {
				return
			}
		}
	}
}

// bomb is 200 MB of JSON in 200 KB: many gzip members in a row are one text.
var bomb = sync.OnceValue(func() []byte {
	var begin, zeros bytes.Buffer
	for text, to := range map[string]*bytes.Buffer{`{"columns":[{"name":"a"}],"rows":[["`: &begin, strings.Repeat("0", 1<<20): &zeros} {
		z := gzip.NewWriter(to)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
	}
	return append(begin.Bytes(), bytes.Repeat(zeros.Bytes(), 200)...)
})

func sendBomb(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(bomb())
}

// The client stops reading an endless response at the cap and does not retry, as the next response would be the same.
// The cap counts the bytes after decompression.
func TestEndlessResponses(t *testing.T) {
	t.Parallel()
	const columns = `{"columns":[{"name":"a"}],`
	tests := []struct {
		name, begin, repeat string
		rows                error // the stream's error, if it is another one
	}{
		{"blanks", "", " ", nil},
		{"a string", `{"id":"`, "a", nil},
		{"an escaped string", `{"id":"`, `\u0061`, nil},
		{"a number", `{"progress":`, "1", nil},
		{"a name", `{"`, "a", nil},
		{"nesting", `{"items":`, "[", webdelivery.ErrBadResponse}, // the tokenizer's limit comes first
		{"a row", columns + `"rows":[[`, "1,", nil},
		{"a cell", columns + `"rows":[["`, "a", nil},
		{"blanks between rows", columns + `"rows":[[1],`, "\n", nil},
		{"columns", `{"columns":[`, `{"name":"a"},`, nil},
		{"rows before columns", `{"rows":[`, "[1],", nil},
		{"query", `{"query":{"filters":"`, "a", nil},
		{"total_results", `{"total_results":`, "1", nil},
		{"gzip bomb", "", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inSized(t, func(f *fixture.Fixture, op step) {
				var taken atomic.Int64
				send := sendBomb
				if tt.repeat != "" {
					send = endless(&taken, tt.begin, tt.repeat)
				}
				f.AddFault(testserver.Fault{Handler: send})
				want := webdelivery.ErrResponseTooLarge
				if op.Kind == operations.Streams && tt.rows != nil {
					want = tt.rows
				}
				require.ErrorIs(f, op.run(f.Context(), f.Client, func(...any) {}), want, op.Name)
				assert.Less(f, taken.Load(), int64(aCap+slack), op.Name)
				assert.Equal(f, 1, f.Srv.Count(op.Method, op.Pattern()), op.Name)
			})
		})
	}
	// The client reads the beginning of a rejection, and some more so that the connection can be used again.
	t.Run("refusal", func(t *testing.T) {
		t.Parallel()
		inSized(t, func(f *fixture.Fixture, op step) {
			var taken atomic.Int64
			send := endless(&taken, `{"description":"`, "a")
			f.AddFault(testserver.Fault{Handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				send(w, r)
			}})
			err := op.run(f.Context(), f.Client, func(...any) {})
			require.ErrorIs(f, err, webdelivery.ErrBadRequest, op.Name)
			assert.Less(f, taken.Load(), int64(512<<10), op.Name)
			var e *webdelivery.Error
			require.ErrorAs(f, err, &e)
			assert.LessOrEqual(f, len(e.Body), 64<<10, op.Name)
			assert.Less(f, len(err.Error()), 2000, op.Name)
		})
	})
}

// inSized runs a test for each kind of operation, with the cap.
func inSized(t *testing.T, test func(f *fixture.Fixture, op step)) {
	t.Helper()
	for _, op := range everyStep() {
		if slices.Contains(sized, op.String()) {
			fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithMaxResponseBytes(aCap)}}, func(f *fixture.Fixture) { test(f, op) })
		}
	}
}

// A stream takes the same memory however long it is, with all parts except the rows within WithMaxResponseBytes. The
// test counts all allocations, so that nothing depends on the garbage collector.
func TestStreamsTakeConstantMemory(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	const length = 4 << 20
	for name, text := range map[string][2]string{ //nolint:paralleltest // as said
		"rows":           {`{"columns":[{"name":"a"},{"name":"b"}],"rows":[`, `[12345,"some text"],`},
		"unknown array":  {`{"new":[`, `{"a":["some text",1,null]},`},
		"unknown object": {`{"new":{`, `"a":"some text",`},
	} {
		t.Run(name, func(t *testing.T) {
			body := &repeated{text: text[0], then: strings.Repeat(text[1], 1000), left: length}
			client := clientOf(t, webdelivery.BasicAuth(fixture.Username, fixture.Password), func(*http.Request) *http.Response {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}
			}, webdelivery.WithMaxResponseBytes(1<<30), once)
			var err error
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, err = range client.Stats.Events.All(t.Context(), fixture.FirstRows) {
				continue
			}
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, errEnough)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		})
	}
}

var errEnough = errors.New("enough")

// repeated is a text, then another one again and again, then an error.
type repeated struct {
	text, then string
	left       int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errEnough
	}
	if r.text == "" {
		r.text = r.then
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	r.left -= n
	return n, nil
}
