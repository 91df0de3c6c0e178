package suite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// A page of each collection has as many items as the body contains, in the body's order, and the body's own words
// about what follows. All yields each item once, and ends with an error if it cannot get the next page.
func FuzzPages(f *testing.F) {
	for _, seed := range []string{
		`{"uri":"/tasks?page=1","items":[{"id":"a"},{"id":"b"}],"total":3,"has_more":true,"page_count":2,"page_index":1,"prev_uri":null,"next_uri":"/tasks?page=2"}`,
		`{"items":[{"id":"a"}],"total":1,"has_more":false,"page_count":1,"page_index":1,"prev_uri":null,"next_uri":null}`,
		`{"items":[{"id":"a"}],"has_more":true}`,
		`{"items":[],"has_more":true,"next_uri":"/tasks?page=2"}`,
		`{"items":[{"id":"a"}],"has_more":true,"page_index":2}`,
		`{"items":[{"id":"a"},null]}`,
		`{"items":null,"next_uri":"https://evil.example.com/tasks"}`,
		`[{"id":"a"},{"id":"b"}]`,
		`{"tasks":[{"id":"a"}]}`, `{"tasks":[{"id":"a"}],"total":25}`, `{"tasks":[{}],"next_uri":null}`, `{}`,
		`{"ITEMS":[{"ID":"a"}],"page_index":1,"page_count":9}`,
		`{"items":[{"entry":"192.0.2.1","id":"a"}],"next_uri":"?page=2"}`,
		`{"\u0069tems":[{"id":"a\"","x":["items",{"items":1}]}],"\\":"items","a\"items":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx := t.Context()
		plain, once := plainly(body)
		sent := 0
		client := fixture.Answered(t, func(r *http.Request) *http.Response {
			sent++
			require.LessOrEqual(t, sent, 3, "the client reads the same page again and again")
			require.Equal(t, "https", r.URL.Scheme)
			require.Equal(t, "api.example.com", r.URL.Host)
			require.True(t, strings.HasPrefix(r.URL.Path, "/acme/v1/"), r.URL.Path)
			return fixture.Response(http.StatusOK, body)
		})

		tasks, err := client.Tasks.List(ctx, webdelivery.TaskListOptions{})
		checkPage(t, tasks, err, plain, once, func(i webdelivery.Task) string { return i.ID })
		lists, err := client.NetworkLists.List(ctx, webdelivery.NetworkListOptions{})
		checkPage(t, lists, err, plain, once, func(i webdelivery.NetworkList) string { return i.ID })
		entries, err := client.NetworkLists.Entries(ctx, "a", webdelivery.EntryOptions{})
		checkPage(t, entries, err, plain, once, func(i webdelivery.NetworkListEntry) string { return i.ID })

		sent = 0
		all, err := fixture.Gather(client.Tasks.All(ctx, webdelivery.TaskListOptions{}))
		if err == nil {
			require.NotNil(t, tasks)
			assert.Equal(t, tasks.Items, all)
			assert.Equal(t, tasks.HasMore, sent == 2, "the page does not say so, and the second page is the first again")
		} else if tasks != nil { // all pages are the same, so one that follows is a cycle, and the first may call itself the second
			require.ErrorAs(t, err, new(*webdelivery.IncompleteError))
			assert.LessOrEqual(t, len(all), sent*len(tasks.Items))
		}
	})
}

func checkPage[T any](t *testing.T, page *webdelivery.Page[T], err error, plain any, once bool, id func(T) string) {
	t.Helper()
	if err != nil {
		require.ErrorIs(t, err, webdelivery.ErrBadResponse)
		require.Nil(t, page)
		if once {
			require.NotContains(t, err.Error(), "comes twice")
		}
		return
	}
	if !once {
		return
	}
	items, bare := plain.([]any)
	if !bare {
		listed, _ := member(plain, "items").([]any)
		tasks, _ := member(plain, "tasks").([]any)
		items = slices.Concat(listed, tasks)
		if more, said := member(plain, "has_more").(bool); said {
			assert.Equal(t, more, page.HasMore)
		} else if textOf(plain, "next_uri") != "" {
			assert.True(t, page.HasMore)
		}
	}
	require.Len(t, page.Items, len(items))
	for i, item := range items {
		assert.Equal(t, textOf(item, "id"), id(page.Items[i]))
	}
}

// A task has the values of the body's members, in the same words and digits. Printed as JSON and read again, it is
// the same.
func FuzzTask(f *testing.F) {
	for _, seed := range []string{
		`{"id":"t1","uri":"/tasks/t1","operation":"deploy","status":"running","complete":false,"progress":40,"begin_time":"2026-11-20T08:30:00Z","user":{"id":"u","uri":"/users/u"},"target":{"id":"l"}}`,
		`{"id":"t1","complete":true,"end_time":"2026-11-20T08:30:00.123+0000","error_info":{"details":[{"message":"a"}],"message":"m","type":"t"}}`,
		`{"id":"t1","last_updated":"2026-11-20 08:30:00","progress":9007199254740993}`,
		`{"id":"t1","progress":1e2}`, `{"id":"t1","begin_time":"","error_info":null,"user":null}`, `null`, `{}`,
		`{"id":"\ud800","status":"\u0000"}`, `{"error_info":{"details":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		client := fixture.Always(t, body)
		task, err := client.Tasks.Get(t.Context(), "t1")
		if err != nil {
			require.True(t, errors.Is(err, webdelivery.ErrBadResponse) || hasCode(body), "%v", err)
			require.Nil(t, task)
			return
		}
		checkTwice(t, task)
		plain, once := plainly(body)
		if !once {
			return
		}
		require.IsType(t, map[string]any{}, plain)
		assert.Equal(t, textOf(plain, "id"), task.ID)
		assert.Equal(t, textOf(plain, "status"), task.Status)
		assert.Equal(t, textOf(plain, "operation"), task.Operation)
		complete, _ := member(plain, "complete").(bool)
		assert.Equal(t, complete, task.Complete)
		if digits, ok := member(plain, "progress").(json.Number); ok {
			if f, err := digits.Float64(); err == nil && math.Abs(f) < 1<<31 {
				assert.Equal(t, int(f), task.Progress)
			}
		}
		assert.Equal(t, member(plain, "error_info") != nil, task.ErrorInfo != nil)
		assert.Equal(t, textOf(member(plain, "user"), "id"), task.User.ID)
		for name, at := range map[string]time.Time{"begin_time": task.BeginTime, "end_time": task.EndTime, "last_updated": task.LastUpdated} {
			text := textOf(plain, name)
			if text == "" {
				assert.True(t, at.IsZero(), name)
			}
			if want, err := time.Parse(time.RFC3339, text); err == nil {
				assert.True(t, want.Equal(at), name)
			}
		}
	})
}

// whole cuts the fraction of a number that the SDK has read as an integer.
func whole(sent json.Number) string {
	digits, _, _ := strings.Cut(sent.String(), ".")
	return digits
}

// hasCode reports whether the body may be an envelope that rejects.
func hasCode(body []byte) bool { return strings.Contains(string(body), `"code"`) }

// checkTwice prints a value as JSON, reads it and prints it again: the texts are equal. (The values may differ: empty
// details are left out.)
func checkTwice[T any](t *testing.T, value *T) {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	again := new(T)
	require.NoError(t, json.Unmarshal(text, again), "%s", text)
	twice, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(text), string(twice))
}

// A transaction has the values of the body's members. It is not pending if its status is that of a failure, and has a status
// or a code of an error.
func FuzzTransaction(f *testing.F) {
	for _, seed := range []string{
		`{"code":200,"description":"d","transaction_id":9007199254740993,"transaction_response":{"begin_ts":1763629200,"end_ts":-1,"percent_received_responses":50,"transaction_status":"PENDING","transaction_status_description":"x"}}`,
		`{"code":200,"transaction_id":7,"transaction_response":{"begin_ts":1,"end_ts":2,"transaction_status":"SUCCESS"}}`,
		`{"code":500,"transaction_id":7,"transaction_response":{"transaction_status":"done"}}`,
		`{"transaction_id":"7","transaction_response":{"transaction_status":"Failed_partly"}}`,
		`{"code":700}`, `{"code":404,"transaction_id":null,"transaction_response":null}`, `{"code":404,"transaction_id":7}`,
		`{"transaction_response":{"end_ts":-10,"transaction_status":"0"}}`, `{"transaction_id":7}`, `{"code":700,"transaction_id":0}`, `{"code":"x","transaction_response":{"transaction_status":"pending","end_ts":""}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		client := fixture.Always(t, body)
		tx, err := client.Purge.Status(t.Context(), 7)
		if err != nil {
			require.Nil(t, tx)
			var refused *webdelivery.Error
			require.ErrorAs(t, err, &refused)
			if refused.Code < http.StatusBadRequest {
				require.ErrorIs(t, err, webdelivery.ErrBadResponse)
				return
			}
			if plain, once := plainly(body); once { // an envelope, not a transaction
				assert.Nil(t, member(plain, "transaction_id"))
				assert.Nil(t, member(plain, "transaction_response"))
			}
			return
		}
		checkTwice(t, tx)
		assert.True(t, tx.Status != "" || tx.Code >= http.StatusBadRequest)
		bad := tx.Code >= http.StatusBadRequest || regexp.MustCompile("(?i)FAIL|ERROR|ABORT|CANCEL|REJECT").MatchString(tx.Status)
		plain, once := plainly(body)
		if !once {
			return
		}
		response := member(plain, "transaction_response")
		assert.Equal(t, textOf(response, "transaction_status"), tx.Status)
		end, _ := member(response, "end_ts").(json.Number)
		seconds, _ := end.Float64()
		assert.Equal(t, !bad && (seconds <= -1 || strings.EqualFold(tx.Status, "PENDING")), tx.Pending(), "open point 9")
		if digits, ok := member(plain, "transaction_id").(json.Number); ok {
			if zero, err := digits.Float64(); err == nil && zero == 0 { // none
				digits = "7"
			}
			assert.Equal(t, whole(digits), fmt.Sprint(tx.TransactionID))
		}
		for name, at := range map[string]time.Time{"begin_ts": tx.BeginTS, "end_ts": tx.EndTS} {
			if digits, ok := member(response, name).(json.Number); ok {
				seconds, _ := digits.Float64()
				switch {
				case seconds >= 253402300800: // after the last second of the year 9999
					assert.True(t, at.IsZero(), name)
				case seconds >= 1:
					assert.Equal(t, int64(seconds), at.Unix(), name)
				default:
					assert.LessOrEqual(t, at.Unix(), int64(0), name)
				}
			}
		}
	})
}

// A network list has the entries of the body: each one, and each a text.
func FuzzNetworkList(f *testing.F) {
	for _, seed := range []string{
		`{"uri":"/config/networklists/a","id":"a","type":"IP","list":["192.0.2.1","198.51.100.0/24","2001:db8::/32"],"name":"n","description":"","deprecated":false,"entries_uri":"/config/networklists/a/entries","creation_timestamp":"2026-11-20T08:30:00Z","modified_timestamp":"2026-11-20T08:31:00.5Z"}`,
		`{"id":"a","type":"GEO","list":[]}`, `{"id":"a","type":"GEO"}`, `{"id":"a","list":null}`, `{"id":"a","list":["DE",null]}`, `{"List":["x"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := fixture.Always(t, body).NetworkLists.Get(t.Context(), "a")
		if err != nil {
			require.True(t, errors.Is(err, webdelivery.ErrBadResponse) || hasCode(body), "%v", err)
			require.Nil(t, list)
			return
		}
		checkTwice(t, list)
		plain, once := plainly(body)
		if !once {
			return
		}
		assert.Equal(t, textOf(plain, "id"), list.ID)
		assert.Equal(t, textOf(plain, "name"), list.Name)
		entries, _ := member(plain, "list").([]any)
		require.Len(t, list.List, len(entries))
		assert.Equal(t, entries == nil, list.List == nil)
		for i, want := range entries {
			assert.Equal(t, want, list.List[i])
		}
	})
}

// The service document does not show the shape of the lists of dimensions, groupings and metrics (open point 14). A
// method returns every name of the body and no other, or an error.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		`["client_ip","rule_id"]`, `[{"name":"client_ip"}]`, `{"dimensions":["a"]}`, `{"items":[{"name":"a"}]}`,
		`[["a","b"],["c"]]`, `{"groupings":["a,b",["c"]]}`, `{"metrics":["hits"],"items":["x"]}`, `[]`, `[null]`, `{"items":null}`, `[[]]`, `[{"name":null}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		client := fixture.Always(t, body)
		plain, once := plainly(body)
		for what, read := range map[string]func() ([]string, error){
			"dimensions": func() ([]string, error) { return client.Stats.Events.Dimensions(t.Context()) },
			"metrics":    func() ([]string, error) { return client.Stats.WAFTrends.Metrics(t.Context()) },
			"groupings": func() ([]string, error) {
				groupings, err := client.Stats.WAFTrends.Groupings(t.Context())
				var joined []string
				for _, names := range groupings {
					joined = append(joined, strings.Join(names, ","))
				}
				return joined, err
			},
		} {
			got, err := read()
			if err != nil {
				require.True(t, errors.Is(err, webdelivery.ErrBadResponse) || hasCode(body), "%v", err)
				continue
			}
			if !once {
				continue
			}
			list := plain
			if members, ok := plain.(map[string]any); ok {
				list = members["items"]
				if named, ok := members[what]; ok {
					list = named
				}
			}
			items, ok := list.([]any)
			require.True(t, ok, "%s: no list in %s", what, body)
			require.Len(t, got, len(items), what)
			for i, item := range items {
				assert.Equal(t, strings.Join(namesIn(t, item), ","), got[i], what)
			}
		}
	})
}

func namesIn(t *testing.T, item any) (names []string) {
	t.Helper()
	items, ok := item.([]any)
	if !ok {
		items = []any{item}
	}
	for _, item := range items {
		name, ok := item.(string)
		if !ok {
			name, ok = member(item, "name").(string)
		}
		require.True(t, ok, "%v is no name", item)
		names = append(names, name)
	}
	return names
}

// The fuzz targets of responses give a client bytes as if the service had sent them. They compare the client's result
// with what encoding/json reads into a map.

// plainly reads JSON into maps, slices and json.Number. It returns false if an object has a name twice: readers disagree
// about which of the two counts.
func plainly(body []byte) (value any, ok bool) {
	if !jsontext.Value(body).IsValid() {
		return nil, false
	}
	plain := json.NewDecoder(bytes.NewReader(body))
	plain.UseNumber()
	return value, plain.Decode(&value) == nil
}

// member returns a member of an object; nil if it is null or missing.
func member(object any, name string) any {
	members, _ := object.(map[string]any)
	return members[name]
}

// textOf returns a member that is a text, or "".
func textOf(object any, name string) string {
	text, _ := member(object, name).(string)
	return text
}
