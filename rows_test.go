package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
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
	var c []string
	for _, name := range columns {
		c = append(c, fmt.Sprintf(`{"name":%q}`, name))
	}
	return fmt.Sprintf(`{"query":{},"columns":[%s],"rows":[%s],"total_results":%d}`,
		strings.Join(c, ","), strings.Join(rows, ","), len(rows))
}

// collect reads a sequence of rows into texts, as JSON.
func collect(rows iter.Seq2[webdelivery.Row, error]) (texts []string, err error) {
	for row, err := range rows {
		if err != nil {
			return texts, err
		}
		text, err := json.Marshal(row)
		if err != nil {
			return texts, err
		}
		var values []string
		for i := range row.Columns() {
			value, err := row.At(i).MarshalJSON()
			if err != nil {
				return texts, err
			}
			values = append(values, string(value))
		}
		if all := "[" + strings.Join(values, ",") + "]"; all != row.String() {
			return texts, fmt.Errorf("the row %s has the values %s", row, all)
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
	)
	want := []string{`["x",1]`, `["y",2]`, `["z",3]`}
	long := strings.Repeat("]", 256<<10) // split again for each byte, it would take 34 GB of reading
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"as documented", "{" + query + "," + columns + "," + rows + "," + total + "}", want},
		{"rows first", "{" + rows + "," + columns + "," + total + "," + query + "}", want},
		{"columns last", "{" + total + "," + rows + "," + columns + "}", want},
		{"unknown members with names that come twice", `{"x":{"a":1,"a":2},` + columns + "," + rows + "," + total + "}", want},
		{"unknown members", `{"a":{"rows":[1,[2]]},` + columns + `,"b":[{}],` + rows + `,"c":null,` + total + "}", want},
		{"blanks everywhere", " {\n\"columns\" : [ {\"name\" : \"a\"} , {\"name\":\"b\",\"type\":\"int\"} ] ,\r\n\t\"rows\" : [ [ \"x\" , 1 ] ,[\n\"y\"\t,2\n]\n,[\"z\", 3 ]] , \"total_results\" : 3 } \n", want},
		{"no row", `{"columns":[{"name":"a"}],"rows":[],"total_results":0}`, nil},
		{"no row and no column", `{"columns":[],"rows":[],"total_results":0}`, nil},
		{"rows that are null", `{"columns":[{"name":"a"}],"rows":null,"total_results":0}`, nil},
		{"rows that are null, before the rest", `{"total_results":0,"rows":null,"columns":[]}`, nil},
		{"a total that is written as a float", strings.Replace("{"+columns+","+rows+","+total+"}", `:3}`, `:3.00}`, 1), want},
		{"every kind of value", resultOf([]string{"a", "b", "c", "d", "e"}, `["",-0.5e3,true,false,null]`), []string{`["",-0.5e3,true,false,null]`}},
		{"escapes", resultOf([]string{"a", "b"}, `["\"\\,]","\u00fc\n"]`), []string{`["\"\\,]","\u00fc\n"]`}},
		{"more than 53 bits", resultOf([]string{"a"}, `[9223372036854775807]`), []string{`[9223372036854775807]`}},
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
		{"half a surrogate pair in a name", `{"columns":[{"name":"\ud800"}],"rows":[],"total_results":0}`, "surrogate"},
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

// If fewer rows come than match, up to the limit, the error contains both numbers.
func TestFewerRowsThanMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit, rows int
		total       int64
		incomplete  bool
	}{
		{10, 10, 99, false},
		{10, 9, 99, true},
		{10, 9, 9, false},
		{5, 5, 99, false},
		{5, 4, 99, true},
		{5, 4, 4, false},
		{500, 99, 99, false},
		{500, 98, 99, true},
		{500, 0, 1, true},
		{1, 3, 3, false}, // more rows than the limit are not incomplete
	} {
		client, q := fixture.Always(t, []byte(rowsOf(tt.rows, tt.total))), fixture.ADay
		q.Limit = tt.limit
		got, err := collect(client.Stats.Events.All(t.Context(), q))
		assert.Len(t, got, tt.rows)
		assertIncomplete(t, tt.incomplete, tt.rows, tt.total, err)
		_, err = client.Stats.Events.Query(t.Context(), q)
		assertIncomplete(t, tt.incomplete, tt.rows, tt.total, err)
	}
}

// A row knows its columns and values. A clone, and a row of a Result, stays valid; what they return is the caller's.
func TestRow(t *testing.T) {
	t.Parallel()
	const count = 30_000 // more than a block of memory holds
	rows := make([]string, count)
	for i := range rows {
		rows[i] = fmt.Sprintf(`["text %d", %d ]`, i, i)
	}
	stats := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, rows...))).Stats
	var kept []webdelivery.Row
	for row, err := range stats.Events.All(t.Context(), fixture.FirstRows) {
		require.NoError(t, err)
		_, ok := row.Get("c")
		assert.False(t, ok)
		row.Columns()[0] = "changed"
		kept = append(kept, row.Clone())
	}
	require.Len(t, kept, count)
	result, err := stats.Events.Query(t.Context(), fixture.ADay)
	require.NoError(t, err)
	result.Columns[0] = "changed"
	for i, row := range result.Rows {
		want := fmt.Sprintf(`["text %d",%d]`, i, i)
		require.Equal(t, []string{want, want, want}, []string{kept[i].String(), row.String(), row.Clone().String()})
	}
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

// A stream that stalls is an error after the idle time. If bytes continue to arrive, a stream has no time limit.
func TestStreamsThatStandStill(t *testing.T) {
	t.Parallel()
	body := resultOf([]string{"a"}, `["x"]`, `["y"]`, `["z"]`)
	for _, tt := range []struct {
		every   time.Duration // between two bytes
		stall   time.Duration // once, in the middle
		options []webdelivery.Option
		err     bool
	}{
		{59 * time.Second, 0, nil, false},
		{61 * time.Second, 0, nil, true},
		{30 * time.Second, 40 * time.Second, nil, true},
		{3 * time.Second, 0, []webdelivery.Option{webdelivery.WithIdleTimeout(2 * time.Second)}, true},
	} {
		fixture.InFakeTime(t, fixture.Setup{Options: tt.options}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 200, Body: body, Dribble: tt.every, Stall: tt.stall})
			_, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
			if !tt.err {
				require.NoError(f, err)
				return
			}
			var timeout interface{ Timeout() bool }
			require.ErrorAs(f, err, &timeout)
			assert.True(f, timeout.Timeout())
			require.NotErrorIs(f, err, webdelivery.ErrBadResponse)
		})
	}
}

// The time that a program takes for its rows does not count.
func TestAProgramMayTakeItsTime(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 200, Body: resultOf([]string{"a"}, slices.Repeat([]string{`["` + strings.Repeat("x", 10_000) + `"]`}, 100)...)})
		rows := 0
		for _, err := range f.Client.Stats.Events.All(f.Context(), fixture.FirstRows) {
			require.NoError(f, err)
			time.Sleep(61 * time.Second)
			rows++
		}
		assert.Equal(f, 100, rows)
	})
}

// If the connection is cut or the context ends, the stream ends with that error, not with ErrBadResponse.
func TestStreamsThatAreCut(t *testing.T) {
	t.Parallel()
	body := resultOf([]string{"a"}, slices.Repeat([]string{`["some text"]`}, 1000)...)
	for _, length := range []bool{false, true} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: fixture.EventsData, Handler: func(w http.ResponseWriter, _ *http.Request) {
				if length {
					w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				}
				_, _ = io.WriteString(w, body[:len(body)/2])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}})
			rows, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
			require.ErrorIs(f, err, io.ErrUnexpectedEOF)
			require.NotErrorIs(f, err, webdelivery.ErrBadResponse)
			assert.NotEmpty(f, rows)
			assert.Equal(f, 1, f.Srv.Count("", fixture.EventsData), "after rows were yielded, there is no retry")
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 200, Body: body, Dribble: time.Millisecond})
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		rows := 0
		var last error
		for _, err := range f.Client.Stats.Events.All(ctx, fixture.FirstRows) {
			if last = err; err == nil {
				rows++
				cancel()
			}
		}
		require.ErrorIs(f, last, context.Canceled)
		assert.Equal(f, 1, rows)
	})
}

// Before the first row of a stream has arrived, the client retries it like any other read, and a Query to its end: the
// rows of a failed attempt are not among those of the next.
func TestRowsOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	body := resultOf([]string{"a"}, "[1]", "[2]")
	for way, read := range ways {
		fixture.InFakeTime(t, fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password)}, func(f *fixture.Fixture) {
			begin := strings.Index(body, "[1]")
			if way == "Query" {
				begin = strings.Index(body, "[2]")
			}
			f.AddFault(testserver.Fault{Path: fixture.EventsData, Count: 1, Status: 503})
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
			assert.Equal(f, 4, f.Srv.Count("", fixture.EventsData), way)
		})
	}
}

// A code of 400 or more behind the rows is an error with that code.
func TestARefusalBehindRows(t *testing.T) {
	t.Parallel()
	body := strings.TrimSuffix(resultOf([]string{"a"}, "[1]"), "}") + `,"code":503,"description":"gone"}`
	inEveryWay(t, body, func(_ []string, err error, way string) {
		var e *webdelivery.Error
		require.ErrorAs(t, err, &e, way)
		assert.Equal(t, []any{503, "gone"}, []any{e.Code, e.Description}, way)
	})
}

// Any number of goroutines may read a row of a Result and a clone, also one of a row that was scanned before, and while
// the stream goes on. (A streamed row itself is for one goroutine, see Row.)
func TestRowsThatGoroutinesShare(t *testing.T) {
	t.Parallel()
	client := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["x",1]`, `["y",2]`, `["z",3]`)))
	result, err := client.Stats.Events.Query(t.Context(), fixture.ADay)
	require.NoError(t, err)
	var all sync.WaitGroup
	share := func(row webdelivery.Row, want string) {
		for range 4 {
			all.Go(func() {
				value, _ := row.Get("b")
				assert.Equal(t, want, fmt.Sprint(row.At(0), value, row.Columns(), row.Clone()))
			})
		}
	}
	want := []string{`x 1 [a b] ["x",1]`, `y 2 [a b] ["y",2]`, `z 3 [a b] ["z",3]`}
	for i, row := range result.Rows {
		share(row, want[i])
	}
	n := 0
	for row, err := range scannedRows(client.Stats.Events.All(t.Context(), fixture.FirstRows)) {
		require.NoError(t, err)
		share(row.Clone(), want[n])
		n++
	}
	all.Wait()
	assert.Equal(t, 3, n)
}

// If the caller leaves a loop over rows or over structs early, the body is closed: no goroutine is left in the bubble, and
// the service is free again.
func TestStoppingEarly(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: fixture.EventsData, Handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"columns":[{"name":"a"}],"rows":[[0]`)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, ",[1]")
			}
		}})
		rows := 0
		for _, err := range scannedRows(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows)) {
			require.NoError(f, err)
			if rows++; rows == 1000 {
				break
			}
		}
		assert.Equal(f, 1000, rows)
	})
}

// After a whole stream, the next call uses its connection.
func TestAStreamReadToItsEndLeavesItsConnection(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a"}, "[1]"))
		for range 10 {
			_, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
			require.NoError(f, err)
		}
		assert.Equal(f, 1, f.Srv.Connections())
	})
}

// All rows of a stream together may have any length. MaxResponseBytes limits a single row, and all other parts
// together: those before the columns, between columns and rows, and behind the rows.
func TestStreamsAreBoundedButForTheirRows(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(strings.Repeat(`["some text"],`, 1000), ",")
	tests := []struct {
		name, body string
		tooLarge   bool
	}{
		{"many rows", resultOf([]string{"a"}, strings.Split(long, ",")...), false},
		{"blanks without end between rows", resultOf([]string{"a"}, `[1]`, strings.Repeat(" ", 10_000)+`[1]`), true},
		{"a long unknown member", `{"new":[` + long + `],` + resultOf([]string{"a"})[1:], true},
		{"many unknown members", `{` + strings.Repeat(`"new":[0],`, 1000) + resultOf([]string{"a"})[1:], true},
		{"unknown members behind many rows", `{"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 1000) + `"total_results":1000}`, true},
		{"a few unknown members behind many rows", `{"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 700) + `"total_results":1000}`, false},
		{"unknown members before and behind many rows", `{` + strings.Repeat(`"new":[0],`, 500) + `"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 500) + `"total_results":1000}`, true},
		{"a long row", resultOf([]string{"a"}, `["`+strings.Repeat("x", 10_000)+`"]`), true},
		{"two values that are long together", `{"query":{"filters":"` + strings.Repeat("x", 6_000) + `"},` +
			resultOf([]string{strings.Repeat("y", 6_000)}, `[1]`)[len(`{"query":{},`):], true},
		{"rows before columns", `{"rows":[` + long + `],"columns":[{"name":"a"}],"total_results":1000}`, true},
	}
	small := webdelivery.WithMaxResponseBytes(8 << 10)
	for _, tt := range tests {
		fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{small}}, func(f *fixture.Fixture) {
			answers(f, tt.body)
			_, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
			assert.Equal(f, tt.tooLarge, errors.Is(err, webdelivery.ErrResponseTooLarge), tt.name)
			_, err = f.Client.Stats.Events.Query(f.Context(), fixture.ADay)
			require.ErrorIs(f, err, webdelivery.ErrResponseTooLarge)
		})
	}
	// A response of exactly the limit is read. One byte more is too much, even a blank at the end.
	exact := `{"columns":[{"name":"a"}],"rows":[],"total_results":0,"x":"`
	exact += strings.Repeat("x", 8<<10-len(exact)-2) + `"}`
	for end, want := range map[string]error{"": nil, " ": webdelivery.ErrResponseTooLarge} {
		for way, read := range ways {
			fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{small}}, func(f *fixture.Fixture) {
				answers(f, exact+end)
				_, err := read(f.Context(), f.Client)
				require.ErrorIs(f, err, want, way)
			})
		}
	}
}

func faultFor(path, body string) testserver.Fault {
	return testserver.Fault{Path: path, Status: 200, Body: body}
}

// The client closes the body of every response with rows once, whatever the body is and however its reading ends. So
// the connection can be used again.
func TestEveryBodyWithRowsIsClosed(t *testing.T) {
	t.Parallel()
	whole := resultOf([]string{"a"}, `[1]`, `[2]`)
	for name, body := range map[string]string{
		"whole": whole, "cut": whole[:len(whole)-1], "no result": `{"columns":{}}`, "a wrong row": resultOf([]string{"a"}, `[]`),
		"an envelope": `{"code":403,"description":"no"}`, "empty": "",
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
				assert.Equal(t, name == "whole" && status == http.StatusOK, err == nil, "%s, %s, %d: %v", name, way, status, err)
				assert.Equal(t, 1, sent.times, "%s, %s, %d", name, way, status)
			}
		}
	}
}
