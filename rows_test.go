package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// answers makes the service answer statistics queries with this body.
func answers(f *fixture.Fixture, body string) {
	f.AddFault(testserver.Fault{Path: fixture.EventsData, Status: 200, Body: body})
}

// resultOf returns a result with these columns and rows; all of them match.
func resultOf(columns []string, rows ...string) string {
	return fmt.Sprintf(`{"query":{},"columns":[{"name":"%s"}],"rows":[%s],"total_results":%d}`,
		strings.Join(columns, `"},{"name":"`), strings.Join(rows, ","), len(rows))
}

// collect reads a sequence of rows into texts, as JSON.
func collect(rows iter.Seq2[webdelivery.Row, error]) (texts []string, err error) {
	for row, err := range rows {
		if err != nil {
			return texts, err
		}
		values := []webdelivery.Value{}
		for i := range row.Columns() {
			values = append(values, row.At(i))
		}
		text, err1 := json.Marshal(row)
		each, err2 := json.Marshal(values)
		if string(text) != string(each) {
			return texts, fmt.Errorf("the row %s has the values %s: %w", text, each, errors.Join(err1, err2))
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// ways read a response; each test of a response runs with all of them. Scan reads rows into structs while it splits them.
var ways = map[string]func(context.Context, *webdelivery.Client) ([]string, error){
	"All": func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
		return collect(c.Stats.Events.All(ctx, fixture.FirstRows))
	},
	"Query": func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
		result, err := c.Stats.Events.Query(ctx, fixture.ADay)
		if err != nil {
			return nil, err
		}
		return collect(result.All())
	},
	"Scan": func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
		return collect(scannedRows(c.Stats.Events.All(ctx, fixture.FirstRows)))
	},
}

// scannedRows yields rows after they were scanned.
func scannedRows(rows iter.Seq2[webdelivery.Row, error]) iter.Seq2[webdelivery.Row, error] {
	type record struct {
		A string `stats:"a"`
	}
	return func(yield func(webdelivery.Row, error) bool) {
		var last webdelivery.Row
		for _, err := range webdelivery.Scan[record](func(yield func(webdelivery.Row, error) bool) {
			rows(func(row webdelivery.Row, err error) bool {
				last = row
				return yield(row, err)
			})
		}) {
			if !yield(last, err) {
				return
			}
		}
	}
}

// inEveryWay reads a body in all ways, when it comes at once and byte by byte.
func inEveryWay(t *testing.T, body string, check func(rows []string, err error, way string)) {
	t.Helper()
	for name, arrive := range map[string]func(io.Reader) io.Reader{"at once": iotest.DataErrReader, "byte by byte": iotest.OneByteReader} {
		client := fixture.Answered(t, func(*http.Request) *http.Response {
			r := fixture.Response(http.StatusOK, nil)
			r.Body = io.NopCloser(arrive(strings.NewReader(body)))
			return r
		})
		for way, read := range ways {
			rows, err := read(t.Context(), client)
			check(rows, err, way+" "+name)
		}
	}
}

// Valid responses, with their members in every order (open point 30). What is not UTF-8 in a text becomes U+FFFD.
func TestResponsesThatAreRead(t *testing.T) {
	t.Parallel()
	const (
		columns = `"columns":[{"name":"a"},{"name":"b"}]`
		rows    = `"rows":[["x",1],["y",2],["z",3]]`
		total   = `"total_results":3`
		query   = `"query":{"limit":10}`
		values  = `["\"\\,]\u00fc\n",-0.5e3,9223372036854775807,true,false,null]`
	)
	want := []string{`["x",1]`, `["y",2]`, `["z",3]`}
	long := strings.Repeat("]", 256<<10) // split again for each byte, it would take 34 GB of reading
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"as documented", "{" + query + "," + columns + "," + rows + "," + total + "}", want},
		{"rows first", "{" + rows + "," + columns + "," + total + "," + query + "}", want},
		{"unknown members", `{"x":{"rows":[1,[2]],"rows":2},` + columns + `,"y":[{}],` + rows + `,"z":null,` + total + "}", want},
		{"blanks everywhere", " {\n\"columns\" : [ {\"name\" : \"a\"} , {\"name\":\"b\",\"type\":\"int\"} ] ,\r\n\t\"rows\" : [ [ \"x\" , 1 ] ,[\n\"y\"\t,2\n]\n,[\"z\", 3 ]] , \"total_results\" : 3 } \n", want},
		{"rows that are null, before the rest", `{"total_results":0,"rows":null,"columns":[]}`, nil},
		{"every kind of value", resultOf([]string{"a", "b", "c", "d", "e", "f"}, values), []string{values}},
		{"not UTF-8", resultOf([]string{"a", "b"}, `["/`+"\xff\xfe"+`","\ud800\n"]`), []string{`["/` + "\ufffd\ufffd" + `","` + "\ufffd" + `\n"]`}},
		{"not UTF-8, rows first", `{"rows":[["ü` + "\xc3" + `"]],` + resultOf([]string{"a"})[1:len(`{"query":{},"columns":[{"name":"a"}]`)] + `,"total_results":1}`, []string{`["ü` + "\ufffd" + `"]`}},
		{"a long row", resultOf([]string{"a"}, `["`+long+`"]`), []string{`["` + long + `"]`}},
	} {
		inEveryWay(t, tt.body, func(got []string, err error, way string) {
			require.NoError(t, err, "%s: %s", way, tt.name)
			assert.Equal(t, tt.want, got, "%s: %s", way, tt.name)
		})
	}
}

// Invalid responses: the error says where they are wrong.
func TestResponsesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, says string }{
		{"a column that comes twice", resultOf([]string{"a", "a"}, `[1,2]`), `"a" comes twice`},
		{"a column without a name", `{"columns":[{}],"rows":[],"total_results":0}`, "no name"},
		{"columns of another type", `{"columns":{"a":1},"rows":[],"total_results":0}`, "columns"},
		{"rows of another type", `{"columns":[],"rows":7,"total_results":0}`, "rows is not an array"},
		{"no columns", `{"rows":[],"total_results":0}`, "no columns"},
		{"columns that are null", `{"columns":null,"rows":[],"total_results":0}`, "no columns"},
		{"rows that are null, and a total", `{"rows":null,"columns":[],"total_results":1}`, "no rows"},
		{"rows that are null, without a total", `{"columns":[],"rows":null}`, "no rows"},
		{"a total with a fraction", `{"columns":[],"rows":[],"total_results":1.5}`, "total_results is 1.5"},
		{"no rows", `{"columns":[],"total_results":0}`, "no rows"},
		{"no total_results", `{"columns":[],"rows":[]}`, "no total_results"},
		{"a negative total", `{"columns":[],"rows":[],"total_results":-1}`, "total_results is -1"},
		{"a total of null", `{"columns":[],"rows":[],"total_results":null}`, "total_results is null"},
		{"a total that is a text", `{"columns":[],"rows":[],"total_results":"five"}`, `total_results is "five"`},
		{"a member that comes twice", `{"columns":[],"columns":[],"rows":[],"total_results":0}`, "duplicate member columns"},
		{"rows twice", `{"columns":[{"name":"a"}],"rows":[],"rows":[],"total_results":0}`, "duplicate member rows"},
		{"bytes after the r", resultOf([]string{"a"}, `[1]`) + "x", "bytes after the r"},
		{"an array", `[]`, "[ where { should be"},
		{"invalid UTF-8 in a name", "{\"columns\":[{\"name\":\"\xff\"}],\"rows\":[],\"total_results\":0}", "UTF-8"},
		{"invalid UTF-8 behind the rows", `{"columns":[{"name":"a"}],"rows":[[1]],"total_results":1,"new":"` + "\xff" + `"}`, "UTF-8"},
		{"invalid UTF-8 behind rows that come first", `{"rows":[["` + "\xff" + `"]],"columns":[{"name":"` + "\xff" + `"}],"total_results":1}`, "UTF-8"},
		{"a wrong number in rows that come first", `{"rows":[["` + "\xff" + `",01]],"columns":[{"name":"a"},{"name":"b"}],"total_results":1}`, "rows before columns: invalid character"},
		{"a wrong separator behind rows that come first", `{"rows":[[1]]:1,"columns":[{"name":"a"}],"total_results":1}`, "bytes after the rows: "},
		{"plain text", "log in", "invalid character"},
	} {
		inEveryWay(t, tt.body, func(_ []string, err error, way string) {
			refusedResponse(t, err, tt.says, way+": "+tt.name)
		})
	}
}

func refusedResponse(t *testing.T, err error, says, what string) {
	t.Helper()
	require.ErrorIs(t, err, webdelivery.ErrBadResponse, what)
	require.ErrorContains(t, err, says, what)
	require.True(t, utf8.ValidString(err.Error()), what)
	var e *webdelivery.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 200, e.StatusCode)
	require.Equal(t, "/acme/v1"+fixture.EventsData, e.Path)
}

// A row that is wrong is an error after the rows before it, and so is a response that is cut anywhere.
func TestRowsThatAreWrong(t *testing.T) {
	t.Parallel()
	good := []string{`["x",1]`, `["y",2]`, `["z",3]`}
	for row, says := range map[string]string{
		`["x"]`: "row %d has 1 values, and there are 2 columns", `["x",1,2]`: "row %d has 3 values, and there are 2 columns", `[]`: "row %d has 0 values",
		`null`: "row %d is not an array", `{"a":1}`: "row %d is not an array", `3`: "row %d is not an array",
		`["x",[2]]`: "row %d contains a value that is not a string", `[{"]":2},1]`: "row %d contains a value that is not a string",
		`["x",01]`: "row %d is not JSON: invalid character", `["x",tru]`: "row %d is not JSON: invalid", `["x",1}`: "row %d is not JSON: invalid character",
		`["x" 1]`: "row %d is not JSON: invalid character", `["x",1,]`: "row %d is not JSON: invalid character", "[\xff,1]": "row %d is not JSON: invalid character",
		"[\"\xff\x01\",1]": "row %d is not JSON: invalid character", "[\"\xff\\x\",1]": "row %d is not JSON: invalid escape", `["\ud8",1]`: "row %d is not JSON: invalid",
		`["a",` + strings.Repeat("[", 20000) + strings.Repeat("]", 20001): "row %d is not JSON: exceeded max depth",
		`["z",3];["a",4]`: `';' after row %d`,
	} {
		for n := range good {
			body := resultOf([]string{"a", "b"}, append(good[:n:n], row, `["a",4]`)...)
			inEveryWay(t, body, func(got []string, err error, way string) {
				refusedResponse(t, err, fmt.Sprintf(says, n+1), way+": "+body)
				if n > 0 && len(got) > 0 { // a Query has none
					assert.Equal(t, good[:n], got[:n], way)
				}
			})
		}
	}
	whole := resultOf([]string{"a", "b"}, good...)
	for end := 1; end < len(whole); end++ {
		inEveryWay(t, whole[:end], func(_ []string, err error, way string) {
			refusedResponse(t, err, "unexpected EOF", way+": "+whole[:end])
		})
	}
}

// A row knows its columns and values. A clone, and a row of a Result, stays valid; what they return is the caller's. Any
// number of goroutines may read them, also a clone of a row that was scanned before, while the stream goes on.
func TestRow(t *testing.T) {
	t.Parallel()
	const count = 30_000 // more than two blocks of memory hold
	rows := make([]string, count)
	for i := range rows {
		rows[i] = fmt.Sprintf(`["text %d", %d ]`, i, i)
	}
	stats := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, rows...))).Stats
	var readers sync.WaitGroup
	share := func(row webdelivery.Row, i int) {
		for range 2 {
			readers.Go(func() {
				value, _ := row.Get("b")
				want := fmt.Sprintf(`["text %d",%d]`, i, i)
				assert.Equal(t, fmt.Sprint(want, want, i, " [a b]"), fmt.Sprint(row.String(), row.Clone().String(), value, row.Columns()))
			})
		}
	}
	n := 0
	for row, err := range scannedRows(stats.Events.All(t.Context(), fixture.FirstRows)) {
		require.NoError(t, err)
		_, ok := row.Get("c")
		assert.False(t, ok)
		row.Columns()[0] = "changed"
		share(row.Clone(), n)
		n++
	}
	assert.Equal(t, count, n)
	result, err := stats.Events.Query(t.Context(), fixture.ADay)
	require.NoError(t, err)
	result.Columns[0] = "changed"
	for i, row := range result.Rows {
		share(row, i)
	}
	readers.Wait()
	row := result.Rows[0]
	assert.Equal(t, []string{"a", "b"}, row.Columns())
	v, ok := row.Get("a")
	assert.True(t, ok)
	assert.Equal(t, "text 0", v.String())
	assert.Panics(t, func() { row.At(2) })
	assert.Panics(t, func() { row.At(-1) })
	_ = append(row.At(0).Raw(), `,"changed"`...)
	text, err := row.MarshalJSON()
	require.NoError(t, err)
	copy(text, "changed")
	assert.Equal(t, `["text 0",0]`, row.String())

	var zero webdelivery.Row
	assert.Empty(t, zero.Clone().Columns())
	_, ok = zero.Get("a")
	assert.False(t, ok)
	assert.Equal(t, "[]", zero.String())
	assert.True(t, webdelivery.Value{}.IsNull())
	assert.Empty(t, webdelivery.Value{}.String())
}

// A stream may end early. If the connection is cut or the context ends, the error is that one, not ErrBadResponse. In any
// case, also if the caller leaves a loop over structs, the body is closed: no goroutine is left in the bubble.
func TestStreamsThatEndEarly(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]error{"a cut": io.ErrUnexpectedEOF, "a cancel": context.Canceled, "a break": nil} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: fixture.EventsData, Handler: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, `{"columns":[{"name":"a"}],"rows":[[0],[1`)
				_ = http.NewResponseController(w).Flush()
				if end == "a cut" {
					panic(http.ErrAbortHandler)
				}
				<-r.Context().Done()
			}})
			ctx, cancel := context.WithCancel(f.Context())
			defer cancel()
			var got []error
			for _, err := range scannedRows(f.Client.Stats.Events.All(ctx, fixture.FirstRows)) {
				if got = append(got, err); end == "a break" {
					break
				} else if end == "a cancel" {
					cancel()
				}
			}
			require.NoError(f, got[0])
			assert.Equal(f, 1, f.Srv.Count("", fixture.EventsData), "after rows were yielded, there is no retry")
			if want != nil {
				require.Len(f, got, 2)
				require.ErrorIs(f, got[1], want)
				require.NotErrorIs(f, got[1], webdelivery.ErrBadResponse)
			}
		})
	}
}

// Before the first row of a stream has arrived, the client retries it like any other read, and a Query to its end: the
// rows of a failed attempt are not among those of the next. The one that succeeds leaves its connection to the next call.
func TestRowsOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	body := resultOf([]string{"a"}, "[1]", "[2]")
	for way, read := range ways {
		fixture.InFakeTime(t, fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password)}, func(f *fixture.Fixture) {
			begin := strings.Index(body, "[1]")
			if way == "Query" {
				begin = strings.Index(body, "[2]")
			}
			f.AddFault(testserver.Fault{Path: fixture.EventsData, Count: 1, Cut: testserver.CutAfterRead})
			f.AddFault(testserver.Fault{Path: fixture.EventsData, Count: 1, Handler: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, body[:begin])
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}})
			answers(f, body)
			rows, err := read(f.Context(), f.Client)
			require.NoError(f, err)
			assert.Equal(f, []string{"[1]", "[2]"}, rows, way)
			assert.Equal(f, 3, f.Srv.Count("", fixture.EventsData), way)
			connections := f.Srv.Connections()
			_, err = read(f.Context(), f.Client)
			require.NoError(f, err)
			assert.Equal(f, connections, f.Srv.Connections(), way)
		})
	}
}

// All rows of a stream together may have any length. WithMaxResponseBytes limits a single row, and all other parts
// together: those before the columns, between columns and rows, and behind the rows.
func TestStreamsAreBoundedButForTheirRows(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(strings.Repeat(`["some text"],`, 1000), ",")
	exact := `{"columns":[{"name":"a"}],"rows":[],"total_results":0,"x":"`
	exact += strings.Repeat("x", 8<<10-len(exact)-2) + `"}`
	for _, tt := range []struct {
		name, body string
		want       error // of a stream; a Query counts the rows, too
	}{
		{"many rows", resultOf([]string{"a"}, strings.Split(long, ",")...), nil},
		{"blanks without end between rows", resultOf([]string{"a"}, `[1]`, strings.Repeat(" ", 10_000)+`[1]`), webdelivery.ErrResponseTooLarge},
		{"many unknown members", `{` + strings.Repeat(`"new":[0],`, 1000) + resultOf([]string{"a"})[1:], webdelivery.ErrResponseTooLarge},
		{"a few unknown members behind many rows", `{"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 700) + `"total_results":1000}`, nil},
		{"unknown members before and behind many rows", `{` + strings.Repeat(`"new":[0],`, 500) + `"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 500) + `"total_results":1000}`, webdelivery.ErrResponseTooLarge},
		{"a long row", resultOf([]string{"a"}, `["`+strings.Repeat("x", 10_000)+`"]`), webdelivery.ErrResponseTooLarge},
		{"rows before columns", `{"rows":[` + long + `],"columns":[{"name":"a"}],"total_results":1000}`, webdelivery.ErrResponseTooLarge},
		{"exactly the limit", exact, nil},
		{"a blank too much", exact + " ", webdelivery.ErrResponseTooLarge},
	} {
		fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithMaxResponseBytes(8 << 10)}}, func(f *fixture.Fixture) {
			answers(f, tt.body)
			_, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
			require.ErrorIs(f, err, tt.want, tt.name)
			if tt.body != exact {
				tt.want = webdelivery.ErrResponseTooLarge
			}
			_, err = f.Client.Stats.Events.Query(f.Context(), fixture.ADay)
			require.ErrorIs(f, err, tt.want, tt.name)
		})
	}
}

// The client closes the body of every response with rows once, whatever the body is and however its reading ends. So
// the connection can be used again. A code of 400 or more, also behind the rows, is an error with that code.
func TestEveryBodyWithRowsIsClosed(t *testing.T) {
	t.Parallel()
	whole := resultOf([]string{"a"}, `[1]`, `[2]`)
	for body, says := range map[string]string{
		whole: "", whole[:len(whole)-1]: "unexpected EOF", `{"columns":{}}`: "columns", resultOf([]string{"a"}, `[]`): "row 1 has 0 values", "": "bad response",
		`{"code":403,"description":"no"}`: "(code 403): no", strings.TrimSuffix(whole, "}") + `,"code":503,"description":"gone"}`: "(code 503): gone",
	} {
		for way, read := range ways {
			for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusServiceUnavailable} {
				sent := &closing{Reader: strings.NewReader(body)}
				client := fixture.Answered(t, func(*http.Request) *http.Response {
					r := fixture.Response(status, nil)
					r.Body = sent
					return r
				})
				_, err := read(t.Context(), client)
				assert.Equal(t, status == http.StatusOK && body == whole, err == nil, "%s, %s, %d: %v", body, way, status, err)
				if status == http.StatusOK && err != nil {
					require.ErrorContains(t, err, says, way)
				}
				assert.Equal(t, 1, sent.times, "%s, %s, %d", body, way, status)
			}
		}
	}
}
