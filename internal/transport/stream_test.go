package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// begins reads two bytes and says what follows of them.
func begins(code int, unusable error) transport.Reader {
	return func(body io.Reader) (int, error) {
		_, err := io.ReadFull(body, make([]byte, 2))
		if unusable == nil {
			unusable = err
		}
		return code, unusable
	}
}

// aStream is a read whose first two bytes are its beginning.
func aStream() transport.Request {
	r := aRead
	r.Begin = begins(0, nil)
	return r
}

// parts is a body whose parts arrive with pauses before them.
type parts struct {
	ctx   context.Context
	pause time.Duration
	texts []string
	last  error
}

func (p *parts) Read(b []byte) (int, error) {
	if p.pause > 0 {
		select {
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		case <-time.After(p.pause):
		}
	}
	if len(p.texts) == 0 {
		return 0, p.last
	}
	n := copy(b, p.texts[0])
	if p.texts[0] = p.texts[0][n:]; p.texts[0] == "" {
		p.texts = p.texts[1:]
	}
	return n, nil
}

func inParts(pause time.Duration, last error, texts ...string) exchange {
	return withBody(200, func(ctx context.Context) io.Reader { return &parts{ctx, pause, slices.Clone(texts), last} }, "Etag", "x")
}

// Begin has the first bytes and the stream the rest, once the beginning has arrived.
func TestAStream(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		response := f.succeeds(aStream())
		assert.Equal(f, 200, response.Status)
		assert.Equal(f, "x", response.Header.Get("Etag"))
		assert.Nil(f, response.Body)
		attempt := f.requests()[0].context
		require.NoError(f, attempt.Err())
		rest, err := io.ReadAll(response.Stream)
		require.NoError(f, err)
		assert.Equal(f, "cdefgh", string(rest))
		require.NoError(f, attempt.Err())
		assert.Nil(f, response.Broken(nil))
		response.Stream.Close()
		require.ErrorIs(f, attempt.Err(), context.Canceled)
	}, inParts(0, io.EOF, "abc", "def", "gh"))
}

// Nothing of the beginning is handed out, so what goes wrong there is repeated like any other failure.
func TestTheBeginningOfAStreamIsRepeated(t *testing.T) {
	t.Parallel()
	good := inParts(0, io.EOF, "abcd")
	for _, tt := range []struct {
		name   string
		script []exchange
		begin  transport.Reader
		count  int
		cause  string // of the failure; "": it succeeds
		is     error
	}{
		{"it breaks", []exchange{inParts(0, errLost, "a"), good}, begins(0, nil), 2, "", nil},
		{"it always breaks", []exchange{inParts(0, errLost, "a")}, begins(0, nil), 4, "connection lost", errLost},
		{"it stands still", []exchange{inParts(11*time.Second, io.EOF, "a"), good}, begins(0, nil), 2, "", nil},
		{"it always stands still", []exchange{inParts(11*time.Second, io.EOF, "a")}, begins(0, nil), 4, "nothing arrived for 10s", nil},
		{"it is slow", []exchange{inParts(9*time.Second, io.EOF, "a", "b", "c")}, begins(0, nil), 1, "", nil},
		{"it ends with its connection", []exchange{endless("a"), good}, begins(0, nil), 2, "", nil},
		{"it always ends with its connection", []exchange{endless("a")}, begins(0, nil), 4, "the connection ended in the middle of the JSON text: unexpected EOF", io.ErrUnexpectedEOF},
		{"it ends early by its own fault", []exchange{answer(200, "a")}, begins(0, nil), 1, "", nil},
		{"it is not what was asked for", []exchange{endless("abcd")}, begins(0, errLost), 1, "", nil},
		{"no response", []exchange{cut, good}, begins(0, nil), 2, "", nil},
		{"503", []exchange{answer(503, ""), good}, begins(0, nil), 2, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				r := aRead
				r.Begin = tt.begin
				if tt.cause == "" {
					f.succeeds(r).Stream.Close()
				} else {
					failure := f.fails(r)
					require.EqualError(f, failure.Cause, tt.cause)
					if tt.is != nil {
						require.ErrorIs(f, failure.Cause, tt.is)
					}
				}
				assert.Equal(f, tt.count, f.count())
				for _, r := range f.requests() {
					require.Error(f, r.context.Err())
				}
			}, tt.script...)
		})
	}
}

// A code of 400 or more in place of what was asked for is a refusal like any other.
func TestARefusalInAStream(t *testing.T) {
	t.Parallel()
	const body = `{"code":503,"description":"down"}`
	for _, tt := range []struct {
		code, count int
		class       transport.Class
		outcome     transport.Outcome
	}{
		{400, 1, transport.Read, transport.NotApplied},
		{503, 4, transport.Read, transport.NotApplied},
		{503, 4, transport.Repeatable, transport.Unknown},
		{401, 1, transport.Once, transport.NotApplied},
	} {
		inFakeTime(t, nil, func(f *fixture) {
			failure := f.fails(transport.Request{Class: tt.class, Method: "GET", Path: "/things", Begin: begins(tt.code, nil)})
			assert.Equal(f, tt.count, f.count())
			assert.Equal(f, 200, failure.Status)
			assert.Equal(f, tt.code, failure.Code)
			assert.Equal(f, "down", failure.Description)
			assert.Equal(f, body, string(failure.Body))
			assert.Equal(f, tt.outcome, failure.Outcome)
			assert.Equal(f, tt.code == 401, failure.Unauthorized)
			for _, r := range f.requests() {
				require.Error(f, r.context.Err())
			}
		}, answer(200, body))
	}
	inFakeTime(t, nil, func(f *fixture) { // 399 is none
		f.succeeds(transport.Request{Method: "GET", Begin: begins(399, nil)}).Stream.Close()
	}, answer(200, body))
	inFakeTime(t, nil, func(f *fixture) { // and the rest of it holds nothing up
		failure := f.fails(transport.Request{Method: "GET", Begin: begins(400, nil)})
		assert.Equal(f, "ab", string(failure.Body))
		assert.Equal(f, 2*time.Second, time.Since(f.began))
	}, withBody(200, func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader("ab"), standing{ctx}) }))
}

// A stream may take any time as long as it goes on arriving. Only the time counts in which its reader waits.
func TestHowLongAStreamMayTake(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		response := f.succeeds(aStream())
		_, err := io.Copy(io.Discard, response.Stream)
		require.NoError(f, err)
		assert.Equal(f, 20*9*time.Second, time.Since(f.began))
		response.Stream.Close()
	}, inParts(9*time.Second, io.EOF, slices.Repeat([]string{"ab"}, 19)...))
	inFakeTime(t, nil, func(f *fixture) { // its reader is busy in between
		response := f.succeeds(aStream())
		for range 3 {
			time.Sleep(time.Hour)
			_, err := response.Stream.Read(make([]byte, 2))
			require.NoError(f, err)
			time.Sleep(9 * time.Second)
		}
		response.Stream.Close()
	}, inParts(9*time.Second, io.EOF, "ab", "cd", "ef", "gh"))
	inFakeTime(t, nil, func(f *fixture) { // so is the reader of its beginning, before it reads
		r := aRead
		r.Begin = func(body io.Reader) (int, error) {
			time.Sleep(time.Hour)
			return begins(0, nil)(body)
		}
		f.succeeds(r).Stream.Close()
		assert.Equal(f, 1, f.count())
	}, inParts(time.Second, io.EOF, "ab", "cd"))
	inFakeTime(t, nil, func(f *fixture) { // what arrives too late, although the attempt has been canceled, has arrived
		response := f.succeeds(aStream())
		rest, err := io.ReadAll(response.Stream)
		require.NoError(f, err)
		assert.Equal(f, "cdef", string(rest))
		assert.Equal(f, 44*time.Second, time.Since(f.began))
		response.Stream.Close()
	}, withBody(200, func(context.Context) io.Reader {
		return &parts{context.Background(), 11 * time.Second, []string{"ab", "cd", "ef"}, io.EOF}
	}))
	inFakeTime(t, nil, func(f *fixture) { // it stands still, which is noticed after the idle time
		response := f.succeeds(aStream())
		time.Sleep(3 * time.Second)
		began := time.Now()
		_, err := io.Copy(io.Discard, response.Stream)
		require.EqualError(f, err, "nothing arrived for 10s")
		assert.Equal(f, 10*time.Second, time.Since(began))
		var timeout interface{ Timeout() bool }
		require.ErrorAs(f, err, &timeout)
		assert.True(f, timeout.Timeout())
		failure := response.Broken(errLost)
		require.NotNil(f, failure)
		require.EqualError(f, failure.Cause, "nothing arrived for 10s")
		response.Stream.Close()
	}, withBody(200, func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader("ab"), standing{ctx}) }))
}

// Broken distinguishes a stream that was cut short from one that is not what was asked for.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer exchange
		said   error // by the reader
		cause  error // of the failure; nil: there is none
	}{
		{"whole", inParts(0, io.EOF, "ab", "cd"), nil, nil},
		{"not what was asked for", inParts(0, io.EOF, "ab", "cd"), errors.New("no rows"), nil},
		{"ends early by its own fault", inParts(0, io.EOF, "ab", "cd"), io.ErrUnexpectedEOF, nil},
		{"ends with its connection", endless("abcd"), io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"wrong, and ends with its connection", endless("abcd"), errors.New("no rows"), nil},
		{"breaks", inParts(0, errLost, "ab", "cd"), errLost, errLost},
		{"breaks without a length, and its reader says otherwise", func(*http.Request) (*http.Response, error) {
			resp, err := endless("")(nil)
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("abcd"), failing{errLost}))
			return resp, err
		}, io.ErrUnexpectedEOF, errLost},
		{"breaks, and its reader says otherwise", inParts(0, errLost, "ab", "cd"), io.ErrUnexpectedEOF, errLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				response := f.succeeds(aStream())
				defer response.Stream.Close()
				_, _ = io.Copy(io.Discard, response.Stream)
				failure := response.Broken(tt.said)
				if tt.cause == nil {
					assert.Nil(f, failure)
					return
				}
				require.ErrorIs(f, failure, tt.cause)
				assert.Equal(f, 200, failure.Status)
			}, tt.answer)
		})
	}
	inFakeTime(t, nil, func(f *fixture) { // the caller has left
		ctx, cancel := context.WithCancel(f.Context())
		response, err := f.transport.Send(ctx, aStream())
		require.NoError(f, err)
		time.AfterFunc(time.Second, cancel)
		_, err = io.Copy(io.Discard, response.Stream)
		assert.Equal(f, time.Second, time.Since(f.began))
		require.ErrorIs(f, err, context.Canceled)
		assert.Equal(f, context.Canceled, response.Broken(err).Cause)
		response.Stream.Close()
	}, withBody(200, func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader("ab"), standing{ctx}) }))
}

// A refusal behind what was handed out already is a failure with the words that its reader found.
func TestAStreamThatRefusesAfterAll(t *testing.T) {
	t.Parallel()
	for description, want := range map[string]string{"": "Service Unavailable", "no " + password: "no [redacted]"} {
		inFakeTime(t, nil, func(f *fixture) {
			r := aStream()
			r.Class = transport.Repeatable
			response := f.succeeds(r)
			defer response.Stream.Close()
			failure := response.Refused(503, description)
			assert.Equal(f, want, failure.Description)
			assert.Equal(f, 503, failure.Code)
			assert.Equal(f, 200, failure.Status)
			assert.Equal(f, transport.Unknown, failure.Outcome)
			require.NoError(f, failure.Cause)
		}, inParts(0, io.EOF, "abcd"))
	}
	inFakeTime(t, nil, func(f *fixture) {
		response := f.succeeds(aStream())
		defer response.Stream.Close()
		assert.True(f, response.Refused(401, "").Unauthorized)
	}, inParts(0, io.EOF, "abcd"))
}

// panicking is a body that panics when it is read or closed.
type panicking struct {
	io.Reader
	atClose bool
	closed  *atomic.Int32
}

func (p panicking) Read(b []byte) (int, error) {
	if p.Reader == nil {
		panic("read")
	}
	return p.Reader.Read(b)
}

func (p panicking) Close() error {
	p.closed.Add(1)
	if p.atClose {
		panic("close")
	}
	return nil
}

// A body that panics reaches the user, and ends its attempt all the same.
func TestABodyThatPanics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		r    transport.Request
		body panicking
	}{
		{"while it is read", aRead, panicking{}},
		{"while it is taken", transport.Request{Take: whole}, panicking{}},
		{"while a stream begins", aStream(), panicking{}},
		{"while a stream is closed", aStream(), panicking{Reader: strings.NewReader("abcd"), atClose: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				tt.body.closed = new(atomic.Int32)
				f.script = []exchange{func(*http.Request) (*http.Response, error) {
					resp := respond(200, "")
					resp.Body = tt.body
					return resp, nil
				}}
				assert.Panics(f, func() {
					response, err := f.send(tt.r)
					require.NoError(f, err)
					response.Stream.Close()
				})
				assert.Equal(f, int32(1), tt.body.closed.Load())
				require.Error(f, f.requests()[0].context.Err())
			})
		})
	}
}

// cursed is a context whose Done panics from some time on.
type cursed struct {
	context.Context
	from *atomic.Bool
}

func (c cursed) Done() <-chan struct{} {
	if c.from.Load() {
		panic("Done")
	}
	return c.Context.Done()
}

// The timer of an attempt runs in a goroutine of its own, where a panic of the caller's context would end the program.
func TestAContextThatPanicsWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		from := new(atomic.Bool)
		time.AfterFunc(time.Second, func() { from.Store(true) })
		failure := f.failsWith(cursed{ctx, from}, aRead)
		require.EqualError(f, failure.Cause, "no whole response within 30s")
	}, silent)
}
