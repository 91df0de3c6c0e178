package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// whole is a Reader that takes all of a body and says nothing of its envelope.
func whole(body io.Reader) (int, error) {
	_, err := io.Copy(io.Discard, body)
	return -1, err
}

// A body up to the limit is read whole, however it arrives and whatever its length says; a longer one is an error.
func TestABodyIsReadWholeUpToTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 3000
	for _, size := range []int{0, 1, 511, 512, 513, 1024, 2999, 3000, 3001, 9000} {
		text := strings.Repeat("x", size)
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
			"with its end": iotest.DataErrReader, "in halves": iotest.HalfReader,
		} {
			for _, length := range []int64{-1, 0, 1, int64(size) / 2, int64(size), int64(size) + 9000, 1 << 50} {
				for _, take := range []transport.Reader{nil, whole} {
					inFakeTime(t, func(c *transport.Config) { c.MaxBody = limit }, func(f *fixture) {
						r := aRead
						r.Take = take
						response, err := f.send(r)
						if size > limit {
							require.ErrorIs(f, err, transport.ErrResponseTooLarge)
							require.EqualError(f, errors.Unwrap(err), "webdelivery: response too large: more than 3000 bytes")
							return
						}
						require.NoError(f, err, "%s, %d bytes, length %d", name, size, length)
						require.Equal(f, text, string(response.Body))
					}, func(*http.Request) (*http.Response, error) {
						resp := respond(200, "")
						resp.Body, resp.ContentLength = io.NopCloser(reader(strings.NewReader(text))), length
						return resp, nil
					})
				}
			}
		}
	}
}

// Of a body without end no more is read than shows that it is too large.
func TestNoMoreIsReadThanTheLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{1, 511, 512, 513, 1024, 3000, 1 << 15, 100_000} {
		for _, take := range []transport.Reader{nil, whole, func(body io.Reader) (int, error) {
			_, err := io.ReadFull(body, make([]byte, limit))
			assert.NoError(t, err)
			return 0, nil
		}} {
			inFakeTime(t, func(c *transport.Config) { c.MaxBody = limit }, func(f *fixture) {
				var n atomic.Int64
				f.script = []exchange{withBody(200, func(context.Context) io.Reader { return counted{&n} })}
				r := aRead
				r.Take = take
				require.ErrorIs(f, f.fails(r), transport.ErrResponseTooLarge)
				assert.Equal(f, limit+1, n.Load())
			})
		}
	}
}

// If only the end of the connection marks the end of a body, one that is the beginning of a JSON text was cut.
// Everywhere else HTTP tells, and the service would send the same again.
func TestABodyThatOnlyTheConnectionEnds(t *testing.T) {
	t.Parallel()
	bent := func(body string, bend func(*http.Response)) exchange {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := endless(body)(r)
			bend(resp)
			return resp, err
		}
	}
	const begun = `{"id":7`
	for _, tt := range []struct {
		name    string
		answer  exchange
		hasBody bool
		cut     bool
	}{
		{"an object cut", endless(begun), false, true},
		{"an array cut", endless(`[1,`), false, true},
		{"a whole object", endless(`{"id":7}`), true, false},
		{"a page", endless(`<html>`), true, false},
		{"nothing where there may be nothing", endless(``), false, false},
		{"nothing where there must be something", endless(``), true, true},
		{"blanks where there must be something", endless(" \t\r\n"), true, true},
		{"blanks where there may be nothing", endless(" \t\r\n"), false, false},
		{"cut with a length", answer(200, begun), true, false},
		{"cut in chunks", bent(begun, func(r *http.Response) { r.TransferEncoding = []string{"chunked"} }), true, false},
		{"cut over HTTP/2", bent(begun, func(r *http.Response) { r.ProtoMajor = 2 }), true, false},
		{"cut in gzip", bent(begun, func(r *http.Response) { r.Uncompressed = true }), true, false},
		{"nothing of gzip", bent(``, func(r *http.Response) { r.Uncompressed = true }), true, true},
		{"no body at all", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ProtoMajor: 1}, nil
		}, true, false},
		{"a refusal", bent(begun, func(r *http.Response) { r.StatusCode = 404 }), true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				r := aRead
				r.HasBody = tt.hasBody
				_, err := f.send(r)
				if !tt.cut {
					assert.Equal(f, 1, f.count())
					assert.NotErrorIs(f, err, io.ErrUnexpectedEOF)
					return
				}
				require.ErrorIs(f, err, io.ErrUnexpectedEOF)
				require.EqualError(f, errors.Unwrap(err), "the connection ended in the middle of the JSON text: unexpected EOF")
				var failure *transport.Failure
				require.ErrorAs(f, err, &failure)
				assert.Empty(f, failure.Body)
				assert.Equal(f, 4, f.count())
			}, tt.answer)
		})
	}
}

// A body that breaks or is too large says so, and not that it was cut.
func TestWhatElseIsWrongWithABodyThatOnlyTheConnectionEnds(t *testing.T) {
	t.Parallel()
	breaking := func(*http.Request) (*http.Response, error) {
		resp, err := endless("")(nil)
		resp.Body = io.NopCloser(failing{errLost})
		return resp, err
	}
	for _, r := range []transport.Request{
		{Class: transport.Read, HasBody: true},
		{Class: transport.Read, Take: func(io.Reader) (int, error) { return 0, io.ErrUnexpectedEOF }},
	} {
		inFakeTime(t, nil, func(f *fixture) { assert.Equal(f, errLost, f.fails(r).Cause) }, breaking)
		inFakeTime(t, func(c *transport.Config) { c.MaxBody = 3 }, func(f *fixture) {
			require.ErrorIs(f, f.fails(r), transport.ErrResponseTooLarge)
		}, endless("[1,2,3"))
	}
}

// The end of a gzip text is marked, once it has begun.
func TestGzipThatOnlyTheConnectionEnds(t *testing.T) {
	t.Parallel()
	unpacked := func(body string) exchange {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := endless(body)(r)
			resp.Uncompressed = true
			return resp, err
		}
	}
	reader := func(body io.Reader) (int, error) {
		_, _ = io.Copy(io.Discard, body)
		return 0, io.ErrUnexpectedEOF
	}
	for _, r := range []transport.Request{{Class: transport.Read, Take: reader}, {Class: transport.Read, Begin: reader}} {
		inFakeTime(t, nil, func(f *fixture) {
			if response := f.succeeds(r); response.Stream != nil {
				response.Stream.Close()
			}
		}, unpacked("[1,"))
		inFakeTime(t, nil, func(f *fixture) {
			require.ErrorIs(f, f.fails(r), io.ErrUnexpectedEOF)
			assert.Equal(f, 4, f.count())
		}, unpacked(""))
	}
}

// Whatever the status and the way of reading, the body is closed once, and not read after that.
func TestEveryBodyIsClosedOnce(t *testing.T) {
	t.Parallel()
	for status, err := range map[int]error{101: transport.ErrBadReply, 199: transport.ErrBadReply, 200: nil, 300: nil, 404: nil, 503: nil} {
		for _, r := range []transport.Request{aRead, {Class: transport.Read, Take: whole}, {Class: transport.Read, Begin: whole}} {
			for _, reader := range []func() io.Reader{
				func() io.Reader { return strings.NewReader(`{"id":7}`) },
				func() io.Reader { return strings.NewReader(`{"code":503}`) },
				func() io.Reader { return failing{errLost} },
			} {
				var bodies []*closing
				inFakeTime(t, nil, func(f *fixture) {
					response, failure := f.send(r)
					if status != 200 {
						require.Error(f, failure)
					}
					if err != nil {
						require.ErrorIs(f, failure, err)
					}
					if response != nil && response.Stream != nil {
						assert.Zero(f, bodies[0].times)
						response.Stream.Close()
						response.Stream.Close()
					}
				}, func(*http.Request) (*http.Response, error) {
					resp := respond(status, "")
					bodies = append(bodies, &closing{Reader: reader()})
					resp.Body = bodies[len(bodies)-1]
					return resp, nil
				})
				for _, body := range bodies {
					assert.Equal(t, 1, body.times, "%d", status)
					assert.False(t, body.late, "%d", status)
				}
			}
		}
	}
}

// The body of a 101 is the connection itself: nothing of it is read.
func TestAnInformationalStatusIsNoResponse(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 100, 101, 199} {
		inFakeTime(t, nil, func(f *fixture) {
			failure := f.fails(aRead)
			require.ErrorIs(f, failure, transport.ErrBadReply)
			assert.Contains(f, failure.Cause.Error(), "webdelivery: bad response: status ")
			assert.Zero(f, time.Since(f.began))
		}, withBody(status, func(ctx context.Context) io.Reader { return standing{ctx} }))
	}
}

// counted counts what is read of a body without end.
type counted struct{ n *atomic.Int64 }

func (c counted) Read(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// The beginning of a refusal is kept, and a bounded part of the rest read, so that the connection can be used again.
func TestARefusalIsReadUpToABound(t *testing.T) {
	t.Parallel()
	for _, r := range []transport.Request{aRead, {Method: "GET", Take: whole}, {Method: "GET", Begin: func(body io.Reader) (int, error) {
		_, _ = body.Read(make([]byte, 1))
		return 404, nil
	}}} {
		for _, status := range []int{200, 404} {
			if status == 200 && r.Begin == nil {
				continue // no refusal
			}
			inFakeTime(t, nil, func(f *fixture) {
				var n atomic.Int64
				f.script = []exchange{withBody(status, func(context.Context) io.Reader { return counted{&n} })}
				failure := f.fails(r)
				assert.Equal(f, strings.Repeat("x", 64<<10), string(failure.Body))
				assert.Less(f, n.Load(), int64(400<<10))
				assert.Greater(f, n.Load(), int64(256<<10))
			})
			inFakeTime(t, nil, func(f *fixture) { // a short one is read to its end
				body := bytes.NewReader(bytes.Repeat([]byte("y"), 250<<10))
				f.script = []exchange{withBody(status, func(context.Context) io.Reader { return body })}
				f.fails(r)
				assert.Zero(f, body.Len())
			})
		}
	}
}

// The status of a refusal counts: a body that is slow or breaks is no fault of its own, and holds nothing up.
func TestARefusalWhoseBodyIsSlow(t *testing.T) {
	t.Parallel()
	begun := strings.NewReader
	for _, tt := range []struct {
		name   string
		status int
		rest   func(ctx context.Context) io.Reader
		took   time.Duration
	}{
		{"breaks", 404, func(context.Context) io.Reader { return failing{errLost} }, 0},
		{"stands still", 404, func(ctx context.Context) io.Reader { return standing{ctx} }, 2 * time.Second},
		{"stands still after 400", 400, func(ctx context.Context) io.Reader { return standing{ctx} }, 2 * time.Second},
		{"pauses", 404, func(context.Context) io.Reader { return pausing{time.Second} }, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				failure := f.fails(aRead)
				assert.Equal(f, tt.status, failure.Status)
				require.NoError(f, failure.Cause)
				assert.Equal(f, "words", string(failure.Body))
				assert.Equal(f, tt.took, time.Since(f.began))
				assert.Equal(f, 1, f.count())
			}, withBody(tt.status, func(ctx context.Context) io.Reader { return io.MultiReader(begun("words"), tt.rest(ctx)) }))
		})
	}
	inFakeTime(t, nil, func(f *fixture) { // what is no refusal may take its time
		f.succeeds(aRead)
		assert.Equal(f, 20*time.Second, time.Since(f.began))
	}, withBody(200, func(context.Context) io.Reader { return pausing{20 * time.Second} }))
	inFakeTime(t, nil, func(f *fixture) { // a 303 that is a success does, too
		r := aRead
		r.Rules.Success = []int{303}
		f.succeeds(r)
		assert.Equal(f, 20*time.Second, time.Since(f.began))
	}, withBody(303, func(context.Context) io.Reader { return pausing{20 * time.Second} }))
}

// A body that is cut may end in a piece of a secret: this is not shown. Of a whole one it is no secret.
func TestABodyThatEndsInAPieceOfASecret(t *testing.T) {
	t.Parallel()
	const text = "said correct-horse-bat"
	inFakeTime(t, nil, func(f *fixture) { assert.Equal(f, "said [redacted]", string(f.fails(aRead).Body)) }, cutBody(404, text))
	inFakeTime(t, nil, func(f *fixture) { assert.Equal(f, text, string(f.fails(aRead).Body)) }, answer(404, text))
	r := aRead
	r.Take = whole
	inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) {
		assert.Equal(f, "said [redacted]", string(f.fails(r).Body))
	}, cutBody(200, text))
}

// Take reads a success as it arrives, in each attempt that has one. What it says of the envelope decides.
func TestTake(t *testing.T) {
	t.Parallel()
	upTo := func(n, code int, err error) transport.Reader {
		return func(body io.Reader) (int, error) {
			_, _ = io.ReadFull(body, make([]byte, n))
			return code, err
		}
	}
	for _, tt := range []struct {
		name   string
		script []exchange
		take   transport.Reader
		taken  int
		count  int
		status int // 0: it succeeds
		cause  error
	}{
		{"a success", []exchange{answer(200, `{"id":7}`)}, upTo(8, 0, nil), 1, 1, 0, nil},
		{"a refusal is not taken", []exchange{answer(404, `{"id":7}`)}, upTo(8, 0, nil), 0, 1, 404, nil},
		{"only what succeeds is", []exchange{answer(503, ""), answer(200, `{"id":7}`)}, upTo(8, 0, nil), 1, 2, 0, nil},
		{"a code", []exchange{answer(200, `{"code":404}`)}, upTo(8, 404, nil), 1, 1, 200, nil},
		{"a code below 400", []exchange{answer(200, `{"code":404}`)}, upTo(8, 0, nil), 1, 1, 0, nil},
		{"no word on a code", []exchange{answer(200, `{"code":404}`)}, upTo(8, -1, nil), 1, 1, 200, nil},
		{"a transient code", []exchange{answer(200, `{"code":503}`), answer(200, `{"id":7}`)}, upTo(8, -1, nil), 2, 2, 0, nil},
		{"what it cannot use is whole all the same", []exchange{answer(200, `{"id":7}`)}, upTo(1, 0, errLost), 1, 1, 0, nil},
		{"a text that ends early by its own fault", []exchange{answer(200, `{"id":`)}, upTo(9, 0, io.ErrUnexpectedEOF), 1, 1, 0, nil},
		{"a text that ends with its connection", []exchange{endless(`{"id":`)}, upTo(9, 0, io.ErrUnexpectedEOF), 4, 4, 200, io.ErrUnexpectedEOF},
		{"a text that is wrong otherwise", []exchange{endless(`{"id":`)}, upTo(9, 0, errLost), 1, 1, 0, nil},
		{"a body that breaks", []exchange{cutBody(200, `{"id":`)}, upTo(9, 0, nil), 4, 4, 200, io.ErrUnexpectedEOF},
		{"a body that breaks behind what was taken", []exchange{cutBody(200, `{"id":`)}, upTo(1, 0, nil), 4, 4, 200, io.ErrUnexpectedEOF},
		{"too large", []exchange{answer(200, strings.Repeat(" ", 1<<20+1))}, upTo(1, 0, nil), 1, 1, 200, transport.ErrResponseTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				taken := 0
				r := aRead
				r.Take = func(body io.Reader) (int, error) {
					taken++
					return tt.take(body)
				}
				if tt.status == 0 {
					response := f.succeeds(r)
					assert.NotEmpty(f, response.Body)
					assert.Nil(f, response.Stream)
				} else {
					failure := f.fails(r)
					assert.Equal(f, tt.status, failure.Status)
					if tt.cause == nil {
						require.NoError(f, failure.Cause)
					} else {
						require.ErrorIs(f, failure, tt.cause)
					}
				}
				assert.Equal(f, tt.taken, taken)
				assert.Equal(f, tt.count, f.count())
			}, tt.script...)
		})
	}
}

// Of a body that is taken its beginning is kept, for errors.
func TestTakeKeepsTheBeginning(t *testing.T) {
	t.Parallel()
	r := aRead
	r.Take = whole
	for _, size := range []int{10, 64 << 10, 72 << 10, 300 << 10} {
		for _, reader := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.DataErrReader} {
			inFakeTime(t, nil, func(f *fixture) {
				text := strings.Repeat("0123456789", size/10)
				f.script = []exchange{withBody(200, func(context.Context) io.Reader { return reader(strings.NewReader(text)) })}
				response := f.succeeds(r)
				assert.True(f, strings.HasPrefix(text, string(response.Body)))
				assert.GreaterOrEqual(f, len(response.Body), min(len(text), 64<<10))
				assert.LessOrEqual(f, len(response.Body), 72<<10)
				assert.Equal(f, text[:min(len(text), 64<<10)], string(response.Failure(nil).Body))
			})
		}
	}
	inFakeTime(t, nil, func(f *fixture) { // a reader that asks again after an error gets it again
		r.Take = func(body io.Reader) (int, error) {
			for range 3 {
				_, err := io.Copy(io.Discard, body)
				assert.Equal(f, errLost, err)
			}
			return 0, nil
		}
		require.ErrorIs(f, f.fails(r), errLost)
	}, withBody(200, func(context.Context) io.Reader { return iotest.ErrReader(errLost) }))
}
