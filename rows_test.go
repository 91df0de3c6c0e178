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
	"time"

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
		texts = append(texts, string(text))
	}
	return texts, nil
}

// Query and All read the same; each test of a response runs with both.
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
}

// Valid responses, with their members in every order (open point 30).
func TestResponsesThatAreRead(t *testing.T) {
	t.Parallel()
	const (
		columns = `"columns":[{"name":"a"},{"name":"b"}]`
		rows    = `"rows":[["x",1],["y",2]]`
		total   = `"total_results":2`
		query   = `"query":{"limit":10}`
	)
	want := []string{`["x",1]`, `["y",2]`}
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"as documented", "{" + query + "," + columns + "," + rows + "," + total + "}", want},
		{"rows first", "{" + rows + "," + columns + "," + total + "," + query + "}", want},
		{"total first", "{" + total + "," + columns + "," + rows + "}", want},
		{"columns last", "{" + total + "," + rows + "," + columns + "}", want},
		{"unknown members with names that come twice", `{"x":{"a":1,"a":2},` + columns + "," + rows + "," + total + "}", want},
		{"unknown members", `{"a":{"rows":[1,[2]]},` + columns + `,"b":[{}],` + rows + `,"c":null,` + total + "}", want},
		{"blanks everywhere", " {\n\"columns\" : [ {\"name\" : \"a\"} , {\"name\":\"b\",\"type\":\"int\"} ] ,\r\n\t\"rows\" : [ [ \"x\" , 1 ] ,[\n\"y\"\t,2\n]\n] , \"total_results\" : 2 } \n", want},
		{"no row", `{"columns":[{"name":"a"}],"rows":[],"total_results":0}`, nil},
		{"no row and no column", `{"columns":[],"rows":[],"total_results":0}`, nil},
		{"rows that are null", `{"columns":[{"name":"a"}],"rows":null,"total_results":0}`, nil},
		{"rows that are null, before the rest", `{"total_results":0,"rows":null,"columns":[]}`, nil},
		{"a total that is written as a float", strings.Replace("{"+columns+","+rows+","+total+"}", `:2}`, `:2.00}`, 1), want},
		{"every kind of value", resultOf([]string{"a", "b", "c", "d", "e"}, `["",-0.5e3,true,false,null]`), []string{`["",-0.5e3,true,false,null]`}},
		{"escapes", resultOf([]string{"a", "b"}, `["\"\\,]","\u00fc\n"]`), []string{`["\"\\,]","\u00fc\n"]`}},
		{"more than 53 bits", resultOf([]string{"a"}, `[9223372036854775807]`), []string{`[9223372036854775807]`}},
	} {
		for way, read := range ways {
			got, err := read(t.Context(), fixture.Always(t, []byte(tt.body)))
			require.NoError(t, err, "%s: %s", way, tt.name)
			assert.Equal(t, tt.want, got, "%s: %s", way, tt.name)
		}
	}
}

// Invalid responses: the error says where they are wrong. The client never panics, and never returns a short result
// without an error.
func TestResponsesThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, says string
	}{
		{"a short row", resultOf([]string{"a", "b"}, `["x",1]`, `["y"]`), "row 2 has 1 values, and there are 2 columns"},
		{"a long row", resultOf([]string{"a"}, `["x",1]`), "row 1 has 2 values"},
		{"an empty row", resultOf([]string{"a"}, `[]`), "row 1 has 0 values"},
		{"a null row", resultOf([]string{"a"}, `null`), "row 1 is not an array"},
		{"an object for a row", resultOf([]string{"a"}, `{"a":1}`), "row 1 is not an array"},
		{"a nested row", resultOf([]string{"a"}, `[["x"]]`), "row 1 contains a value"},
		{"an object in a row", resultOf([]string{"a"}, `[{"x":1}]`), "row 1 contains a value"},
		{"a column that comes twice", resultOf([]string{"a", "a"}, `[1,2]`), `"a" comes twice`},
		{"a column without a name", `{"columns":[{}],"rows":[],"total_results":0}`, "no name"},
		{"columns of another type", `{"columns":{"a":1},"rows":[],"total_results":0}`, "columns"},
		{"rows of another type", `{"columns":[],"rows":7,"total_results":0}`, "rows is not an array"},
		{"no columns", `{"rows":[],"total_results":0}`, "no columns"},
		{"columns that are null", `{"columns":null,"rows":[],"total_results":0}`, "no columns"},
		{"columns that are null, behind the rows", `{"rows":[],"total_results":0,"columns":null}`, "no columns"},
		{"rows that are null, and a total", `{"rows":null,"columns":[],"total_results":1}`, "no rows"},
		{"rows that are null, behind a total", `{"columns":[],"total_results":1,"rows":null}`, "no rows"},
		{"rows that are null, without a total", `{"columns":[],"rows":null}`, "no "},
		{"a total with a fraction", `{"columns":[],"rows":[],"total_results":1.5}`, "total_results is 1.5"},
		{"a total with an exponent", `{"columns":[],"rows":[],"total_results":1.0e3}`, "total_results is 1.0e3"},
		{"columns, then null", `{"columns":[],"columns":null,"rows":[],"total_results":0}`, "duplicate"},
		{"no rows", `{"columns":[],"total_results":0}`, "no rows"},
		{"no total_results", `{"columns":[],"rows":[]}`, "no total_results"},
		{"a negative total", `{"columns":[],"rows":[],"total_results":-1}`, "total_results is -1"},
		{"a total of null", `{"columns":[],"rows":[],"total_results":null}`, "total_results is null"},
		{"a total that is a text", `{"columns":[],"rows":[],"total_results":"five"}`, "total_results"},
		{"a member that comes twice", `{"columns":[],"columns":[],"rows":[],"total_results":0}`, "duplicate"},
		{"rows twice", `{"columns":[{"name":"a"}],"rows":[],"rows":[],"total_results":0}`, "duplicate"},
		{"bytes after the r", resultOf([]string{"a"}, `[1]`) + "x", "bytes after the r"},
		{"a second result", resultOf([]string{"a"}, `[1]`) + resultOf([]string{"a"}), "bytes after the r"},
		{"cut short", `{"columns":[{"name":"a"}],"rows":[[1],[2`, "unexpected EOF"},
		{"cut short between rows", `{"columns":[{"name":"a"}],"rows":[[1],`, "unexpected EOF"},
		{"an array", `[]`, "{"},
		{"invalid UTF-8 in a name", "{\"columns\":[{\"name\":\"\xff\"}],\"rows\":[],\"total_results\":0}", "UTF-8"},
		{"invalid UTF-8 between values", resultOf([]string{"a"}, "[\xff]"), "invalid character"},
		{"a control character in a text", resultOf([]string{"a"}, "[\"\xff\x01\"]"), "invalid character"},
		{"an invalid escape", resultOf([]string{"a"}, "[\"\xff\\x\"]"), "invalid escape"},
		{"broken JSON in a row", resultOf([]string{"a"}, `[01]`), "invalid character"},
		{"too deep", resultOf([]string{"a"}, strings.Repeat("[", 20000)+strings.Repeat("]", 20000)), "exceeded max depth"},
		{"plain text", "log in", "invalid character"},
	}
	for _, tt := range tests {
		for way, read := range ways {
			_, err := read(t.Context(), fixture.Always(t, []byte(tt.body)))
			require.ErrorIs(t, err, webdelivery.ErrBadResponse, "%s: %s", way, tt.name)
			assert.ErrorContains(t, err, tt.says, "%s: %s", way, tt.name)
			var e *webdelivery.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, 200, e.StatusCode)
			assert.Equal(t, "/acme/v1"+fixture.EventsData, e.Path)
		}
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

func TestRow(t *testing.T) {
	t.Parallel()
	client := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["x", 1]`, `["y" ,2]`)))
	var kept []webdelivery.Row
	for row, err := range client.Stats.Events.All(t.Context(), fixture.FirstRows) {
		require.NoError(t, err)
		assert.Len(t, row.Columns(), 2)
		assert.Equal(t, []string{"a", "b"}, row.Columns())
		_, ok := row.Get("c")
		assert.False(t, ok)
		row.Columns()[0] = "changed" // a copy
		kept = append(kept, row.Clone())
	}
	require.Len(t, kept, 2)
	assert.Equal(t, "x 1 y", fmt.Sprint(kept[0].At(0), " ", kept[0].At(1), " ", kept[1].At(0)))
	v, ok := kept[1].Get("b")
	assert.True(t, ok)
	assert.Equal(t, "2", v.String())
	assert.Panics(t, func() { kept[0].At(2) })
	assert.Panics(t, func() { kept[0].At(-1) })

	var zero webdelivery.Row
	assert.Empty(t, zero.Columns())
	assert.Empty(t, zero.Columns())
	assert.Empty(t, zero.Clone().Columns())
	_, ok = zero.Get("a")
	assert.False(t, ok)
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

// Before the first byte of a stream, the client retries it like any other read.
func TestAStreamIsRepeatedBeforeItBegins(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password)}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: fixture.EventsData, Count: 1, Status: 503})
		f.AddFault(testserver.Fault{Path: fixture.EventsData, Count: 1, Cut: testserver.CutAfterRead})
		f.AddFault(testserver.Fault{Path: fixture.EventsData, Skip: 2, Count: 1, Delay: time.Hour})
		answers(f, resultOf([]string{"a"}, "[1]"))
		rows, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
		require.NoError(f, err)
		assert.Len(f, rows, 1)
		assert.Equal(f, 4, f.Srv.Count("", fixture.EventsData))
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
	share := func(i int, row webdelivery.Row) {
		for range 4 {
			all.Go(func() {
				assert.Equal(t, []string{"x", "y", "z"}[i], row.At(0).String())
				value, _ := row.Get("b")
				number, err := value.Int64()
				assert.Equal(t, int64(i+1), number)
				assert.NoError(t, err)
				assert.Equal(t, []string{"a", "b"}, row.Columns())
				assert.Equal(t, row.String(), row.Clone().String())
			})
		}
	}
	for i, row := range result.Rows {
		share(i, row)
	}
	n := 0
	var last webdelivery.Row
	rows := func(yield func(webdelivery.Row, error) bool) {
		client.Stats.Events.All(t.Context(), fixture.FirstRows)(func(row webdelivery.Row, err error) bool {
			last = row
			return yield(row, err)
		})
	}
	for _, err := range webdelivery.Scan[struct {
		A string `stats:"a"`
	}](rows) {
		require.NoError(t, err)
		share(n, last.Clone())
		n++
	}
	all.Wait()
	assert.Equal(t, 3, n)
}

// If the caller leaves the loop early, the body is closed: no goroutine is left in the bubble, and the service is
// free again.
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
		for _, err := range f.Client.Stats.Events.All(f.Context(), fixture.FirstRows) {
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
		{"many rows, blanks between", resultOf([]string{"a"}, strings.Split(strings.ReplaceAll(long, ",", "   ,   "), ",")...), false},
		{"blanks without end between rows", resultOf([]string{"a"}, `[1]`, strings.Repeat(" ", 10_000)+`[1]`), true},
		{"a long unknown member", `{"new":[` + long + `],` + resultOf([]string{"a"})[1:], true},
		{"many unknown members", `{` + strings.Repeat(`"new":[0],`, 1000) + resultOf([]string{"a"})[1:], true},
		{"unknown members between columns and rows", `{"columns":[{"name":"a"}],` + strings.Repeat(`"new":[0],`, 1000) + `"rows":[],"total_results":0}`, true},
		{"unknown members behind many rows", `{"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 1000) + `"total_results":1000}`, true},
		{"a few unknown members behind many rows", `{"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 700) + `"total_results":1000}`, false},
		{"unknown members before and behind many rows", `{` + strings.Repeat(`"new":[0],`, 500) + `"columns":[{"name":"a"}],"rows":[` + long + `],` + strings.Repeat(`"new":[0],`, 500) + `"total_results":1000}`, true},
		{"a long row", resultOf([]string{"a"}, `["`+strings.Repeat("x", 10_000)+`"]`), true},
		{"two values that are long together", `{"query":{"filters":"` + strings.Repeat("x", 6_000) + `"},` +
			resultOf([]string{strings.Repeat("y", 6_000)}, `[1]`)[len(`{"query":{},`):], true},
		{"rows before columns", `{"rows":[` + long + `],"columns":[{"name":"a"}],"total_results":1000}`, true},
	}
	for _, tt := range tests {
		small := webdelivery.WithMaxResponseBytes(8 << 10)
		fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{small}}, func(f *fixture.Fixture) {
			answers(f, tt.body)
			_, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.FirstRows))
			assert.Equal(f, tt.tooLarge, errors.Is(err, webdelivery.ErrResponseTooLarge), tt.name)
			_, err = f.Client.Stats.Events.Query(f.Context(), fixture.ADay)
			require.ErrorIs(f, err, webdelivery.ErrResponseTooLarge)
		})
	}
}

func faultFor(path, body string) testserver.Fault {
	return testserver.Fault{Path: path, Status: 200, Body: body}
}

// If a caller changes what the SDK returned, nothing else changes.
func TestWhatIsHandedOutIsTheCallers(t *testing.T) {
	t.Parallel()
	stats := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["x","y"]`, `["z","w"]`))).Stats
	result, err := stats.Events.Query(t.Context(), fixture.ADay)
	require.NoError(t, err)
	row := result.Rows[0]
	result.Columns[0] = "changed"
	assert.Equal(t, []string{"a", "b"}, row.Columns())
	row.Columns()[1] = "changed"
	assert.Equal(t, []string{"a", "b"}, result.Rows[1].Columns())
	v, ok := row.Get("a")
	assert.True(t, ok)
	assert.Equal(t, "x", v.String())

	_ = append(row.At(0).Raw(), `,"changed"`...)
	assert.Equal(t, `["x","y"]`, row.String())
	text, err := row.MarshalJSON()
	require.NoError(t, err)
	copy(text, "changed")
	assert.Equal(t, `["x","y"]`, row.String())
	again, err := stats.Events.Query(t.Context(), fixture.ADay)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, again.Columns)
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
