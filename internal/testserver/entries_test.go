package testserver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// addresses returns the addresses from 10.0.0.0 + from to 10.0.0.0 + to, without the last.
func addresses(from, to int) []string {
	var texts []string
	for i := from; i < to; i++ {
		texts = append(texts, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String())
	}
	return texts
}

// entryID returns the id of one entry of a list.
func (f fake) entryID(list string, place int) string {
	f.t.Helper()
	ids := f.items(fmt.Sprintf("%s/%s/entries?count=1&page=%d", lists, list, place+1), "id")
	require.Len(f.t, ids, 1)
	return ids[0]
}

// Section 2.6: the fields of an entry in the collection, and those of a single entry.
func TestSection26EntryFields(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Type: "GEO", Entries: []string{"DE"}})
	f.Clock().Advance(time.Second)
	require.Equal(t, 200, f.add("l", "FR").status)
	f.Clock().Advance(time.Second)
	f.ChangeEntries("l", []string{"SE"}, nil)
	ids := f.items(lists+"/l/entries", "id")
	require.Len(t, ids, 3)
	uri := func(i int) string {
		return `"uri":"/config/networklists/l/entries/` + ids[i] + `","id":"` + ids[i] + `"`
	}
	assert.JSONEq(t, `{"uri":"/config/networklists/l/entries?count=100&page=1","total":3,"has_more":false,"page_count":1,"page_index":1,
		"prev_uri":null,"next_uri":null,"items":[
		{`+uri(0)+`,"entry":"DE","added_by":"operator","creation_timestamp":"2026-11-20T12:00:00Z"},
		{`+uri(1)+`,"entry":"FR","added_by":"alice","creation_timestamp":"2026-11-20T12:00:01Z"},
		{`+uri(2)+`,"entry":"SE","added_by":"somebody-else","creation_timestamp":"2026-11-20T12:00:02Z"}]}`, f.get(lists+"/l/entries").body)
	assert.JSONEq(t, `{`+uri(1)+`,"type":"GEO","network_list_uri":"/config/networklists/l"}`, f.get(lists+"/l/entries/"+ids[1]).body)

	f.do(http.MethodDelete, lists+"/l/"+ids[0], "")
	assert.Equal(t, ids[1:], f.items(lists+"/l/entries", "id"), "ids are stable")
	f.add("l", "DE")
	assert.Equal(t, []string{"FR", "SE", "DE"}, f.items(lists+"/l/entries", "entry"))
	assert.NotContains(t, ids, f.entryID("l", 2), "what comes back is another entry")
}

// Section 8: a page has 100 entries by default.
func TestSection8EntryPaging(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	all := addresses(0, 250)
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: all})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "none"})
	for query, want := range map[string][]string{
		"": all[:100], "?page=2": all[100:200], "?page=3": all[200:], "?page=4": {}, "?count=250": all, "?count=7&page=36": all[245:],
		"?count=50000": all,
	} {
		assert.Equal(t, want, f.items(lists+"/l/entries"+query, "entry"), query)
	}
	assert.JSONEq(t, `{"uri":"/config/networklists/l/entries?count=100&page=2","items":[],"total":250,"has_more":true,"page_count":3,
		"page_index":2,"prev_uri":"/config/networklists/l/entries?count=100&page=1",
		"next_uri":"/config/networklists/l/entries?count=100&page=3"}`, f.envelope(lists+"/l/entries?page=2"))
	assert.JSONEq(t, `{"uri":"/config/networklists/none/entries?count=100&page=1","items":[],"total":0,"has_more":false,
		"page_count":0,"page_index":1,"prev_uri":null,"next_uri":null}`, f.get(lists+"/none/entries").body)
}

// Section 8: a full list in pages of 1,000 has each entry once and in order.
func TestSection8PagingOverAFullList(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	all := addresses(0, 50_000)
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: all})
	var got []string
	ids := map[string]bool{}
	next, more := lists+"/l/entries?count=1000", true
	for more {
		envelope := f.get(next).object(t)
		require.Equal(t, "50000", fmt.Sprint(envelope["total"]))
		items, _ := envelope["items"].([]any)
		for _, item := range items {
			entry, _ := item.(map[string]any)
			got = append(got, fmt.Sprint(entry["entry"]))
			ids[fmt.Sprint(entry["id"])] = true
		}
		next, more = envelope["next_uri"].(string)
		require.Equal(t, more, envelope["has_more"])
	}
	assert.True(t, slices.Equal(all, got))
	assert.Len(t, ids, 50_000)
	assert.Equal(t, 50, f.Count(http.MethodGet, lists+"/l/entries"))
}

// Section 2.6: entry values. A rejected request does not change the list.
func TestSection26EntryValues(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for kind, values := range map[string]struct{ good, bad string }{
		"IP": {
			good: `192.0.2.1 0.0.0.0 255.255.255.255 10.0.0.0/8 10.1.2.3/8 0.0.0.0/0 192.0.2.1/32 ::/0 2001:db8:: 2001:DB8::1 ::
				2001:db8::/32 2001:db8::1/128 2001:0db8:0000:0000:0000:0000:0000:0001/64 ::ffff:192.0.2.1 ::ffff:c000:201 ::ffff:192.0.2.0/120 ::ffff:0:0/95`,
			bad: `x DE 192.0.2 192.0.2.256 192.0.2.01 192.0.2.1/ 192.0.2.1/33 192.0.2.1/-1 192.0.2.1/+8 192.0.2.1/08 192.0.2.1/8/8 /8
				192.0.2.1-192.0.2.9 192.0.2.* 192.0.2.1/255.255.255.0 192.0.2.1:80 [2001:db8::1] 2001:db8::g 2001:db8::/129
				2001:db8:::1 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 fe80::1%eth0 fe80::1%25eth0 fe80::%eth0/64 www.example.com 3232235777 0xc0000201
				192.0.2.1,192.0.2.2 １９２.0.2.1`,
		},
		"GEO": {good: `DE FR US AX ZW`, bad: `XK ZZ UK EU XX AA OO de De D DEU 49 D1 192.0.2.1 ÄÖ D- DE,FR`},
	} {
		f.AddNetworkList(testserver.NetworkListSpec{ID: kind, Type: kind})
		for _, text := range strings.Fields(values.good) {
			assert.Equal(t, 200, f.add(kind, text).status, text)
			assert.Contains(t, f.Entries(kind), text)
			f.do(http.MethodPost, lists+"/"+kind+"/entries/deletions", "")
		}
		for _, text := range append(strings.Fields(values.bad), "", " ", "DE ", " 192.0.2.1", "192.0.2.1\n", "DE\n", "192.0.2.0 /24") {
			r := f.add(kind, strings.Fields(values.good)[0], text)
			assert.Equal(t, 400, r.status, "%q", text)
			assert.Contains(t, r.object(t)["description"], "[1]: ", "the place of what is wrong")
			assert.Empty(t, f.Entries(kind), "%q: all or nothing", text)
		}
	}
}

// Open points 26 and 27: values with the same meaning are one entry, with the text of the first one.
func TestSection26SameEntries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first, second string
		same          bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.1/32", true},
		{"192.0.2.1/32", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.0", "192.0.2.0/24", false},
		{"192.0.2.0/24", "192.0.2.0/25", false},
		{"192.0.2.77/24", "192.0.2.0/24", true},
		{"10.0.0.0/8", "10.255.1.2/8", true},
		{"0.0.0.0/0", "192.0.2.1/0", true},
		{"0.0.0.0/0", "::/0", false},
		{"2001:db8::1", "2001:DB8:0:0::0001", true},
		{"2001:db8::1", "2001:db8::1/128", true},
		{"2001:db8::1/64", "2001:db8::/64", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "::ffff:c000:201/128", true},
		{"192.0.2.1", "::192.0.2.1", false},
		{"::ffff:192.0.2.9/120", "192.0.2.0/24", true},
		{"::ffff:0:0/96", "0.0.0.0/0", true},
		{"::ffff:0:0/95", "0.0.0.0/0", false},
		{"::ffff:0:0/95", "::fffe:0:0/95", true},
	} {
		f := start(t, testserver.Config{Dialect: testserver.Dialect{EntriesReply: "entries"}})
		f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{tc.first}})
		want := []string{tc.first}
		if !tc.same {
			want = append(want, tc.second)
		}
		assert.Equal(t, 200, f.add("l", tc.second, tc.second).status)
		assert.Equal(t, want, f.Entries("l"), "%s then %s", tc.first, tc.second)
		f.ChangeEntries("l", nil, []string{tc.second})
		assert.Equal(t, tc.same, len(f.Entries("l")) == 0, "%s removed by %s", tc.first, tc.second)

		f.AddNetworkList(testserver.NetworkListSpec{ID: "seeded", Entries: []string{tc.first, tc.second, tc.first}})
		assert.Equal(t, want, f.Entries("seeded"))
	}
}

// Tests can add invalid entries, to see how a client handles them. Such an entry is compared by its text.
func TestSection26OddEntries(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"nonsense", "fe80::1%eth0", "nonsense"}})
	f.ChangeEntries("l", []string{"nonsense", "", "192.0.2.1"}, []string{"fe80::1%eth0"})
	assert.Equal(t, []string{"nonsense", "", "192.0.2.1"}, f.Entries("l"))
	assert.Equal(t, 200, f.do(http.MethodDelete, lists+"/l/"+f.entryID("l", 1), "").status)
	assert.Equal(t, []string{"nonsense", "192.0.2.1"}, f.Entries("l"))
}

// Section 4.6: the body is an array of objects with one key. Open point 19 is about the key.
func TestSection46EntriesBody(t *testing.T) {
	t.Parallel()
	for key, bodies := range map[string]map[int][]string{
		"": {
			200: {`[{"entry":"192.0.2.1"}]`, ` [ { "entry" : "192.0.2.1" } , {"entry":"192.0.2.2"} ] `, `[{"entry":"192.0.2.\u0031"}]`},
			400: {
				``, ` `, `[`, `{}`, `null`, `[]`, `"192.0.2.1"`, `{"entry":"192.0.2.1"}`, `["192.0.2.1"]`, `[null]`, `[{}]`, `[[]]`,
				`[{"entry":"192.0.2.1"},{}]`, `[{"entry":"192.0.2.1"}] []`, `[{"entry":"192.0.2.1"},]`, `[{"entry":null}]`, `[{"entry":1}]`,
				`[{"entry":["192.0.2.1"]}]`, `[{"Entry":"192.0.2.1"}]`, `[{"value":"192.0.2.1"}]`, `[{"entry":"192.0.2.1","id":"x"}]`,
				`[{"entry":"192.0.2.1","value":"192.0.2.1"}]`, `[{"entry":"192.0.2.1","entry":"192.0.2.1"}]`, "[{\"entry\":\"\xff\"}]",
				`{"entries":[{"entry":"192.0.2.1"}]}`,
			},
		},
		"value": {
			200: {`[{"value":"192.0.2.1"}]`},
			400: {`[{"entry":"192.0.2.1"}]`, `[{"value":"192.0.2.1"},{"entry":"192.0.2.1"}]`},
		},
	} {
		for status, list := range bodies {
			for _, body := range list {
				f := start(t, testserver.Config{Dialect: testserver.Dialect{EntryKey: key}})
				f.AddNetworkList(testserver.NetworkListSpec{ID: "l"})
				r := f.do(http.MethodPost, lists+"/l/entries", body)
				assert.Equal(t, status, r.status, body)
				assert.Equal(t, status == 200, len(f.Entries("l")) > 0, body)
				assert.Equal(t, map[int]int{200: 200, 400: 404}[status], f.get("/tasks/task-1").status, "a task for a change alone")
			}
		}
	}
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l"})
	assert.Equal(t, 406, f.do(http.MethodPost, lists+"/l/entries", entriesBody("192.0.2.1"), header("Content-Type", "text/plain")).status)
	assert.Equal(t, 406, f.do(http.MethodPost, lists+"/l/entries", entriesBody("192.0.2.1"), header("Accept", "text/html")).status)
	assert.Empty(t, f.Entries("l"))
}

// Section 8: at most 5,000 entries per call and 50,000 per list. Entries that the list already has do not count.
func TestSection8EntryLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seeded int
		add    []string
		status int
		after  int
	}{
		"as many as a call may bring":    {0, addresses(0, 5_000), 200, 5_000},
		"one more":                       {0, addresses(0, 5_001), 400, 0},
		"one more, but all the same":     {0, slices.Repeat(addresses(0, 1), 5_001), 400, 0},
		"as many as a list may have":     {45_000, addresses(45_000, 50_000), 200, 50_000},
		"one more, nothing is added":     {45_001, addresses(45_001, 50_001), 400, 45_001},
		"one of them there already":      {45_001, addresses(45_000, 50_000), 200, 50_000},
		"one of them twice":              {49_999, slices.Repeat(addresses(49_999, 50_000), 2), 200, 50_000},
		"full, nothing new":              {50_000, addresses(0, 5_000), 200, 50_000},
		"full, one new among the others": {50_000, append(addresses(0, 4_999), "192.0.2.1"), 400, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: addresses(0, tc.seeded)})
			assert.Equal(t, tc.status, f.add("l", tc.add...).status)
			assert.Len(t, f.Entries("l"), tc.after)
		})
	}
}

// Open point 21: the responses to POST entries. In each form, the task tracks the deployment.
func TestSection46EntriesReplies(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"":        `"operation":"networklist-update"`,
		"task":    `"operation":"networklist-update"`,
		"task_id": `{"task_id":"task-1"}`,
		"id":      `{"id":"task-1"}`,
		"entries": `"added_by":"alice"`,
		"empty":   ``,
	} {
		t.Run("as "+form, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{DeployDuration: 10 * time.Second, Dialect: testserver.Dialect{EntriesReply: form}})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1"}})
			old := f.entryID("l", 0)
			r := f.add("l", "192.0.2.2", "192.0.2.1/32", "192.0.2.2/32")
			assert.Contains(t, r.body, want)
			assert.Equal(t, []string{"192.0.2.1", "192.0.2.2"}, f.Entries("l"), "at once")
			f.Clock().Advance(9999 * time.Millisecond)
			assert.Equal(t, false, f.get("/tasks/task-1").object(t)["complete"])
			f.Clock().Advance(time.Millisecond)
			assert.Equal(t, true, f.get("/tasks/task-1").object(t)["complete"])
			switch form {
			case "empty":
				assert.Equal(t, 204, r.status)
				assert.Empty(t, r.body)
			case "entries":
				id := f.entryID("l", 1)
				const entry = `{"uri":"/config/networklists/l/entries/%[1]s","id":"%[1]s","entry":"%[2]s","added_by":"%[3]s","creation_timestamp":"2026-11-20T12:00:00Z"}`
				assert.JSONEq(t, `[`+fmt.Sprintf(entry, id, "192.0.2.2", "alice")+`,`+fmt.Sprintf(entry, old, "192.0.2.1", "operator")+`]`, r.body)
				fallthrough
			default:
				assert.Equal(t, 200, r.status)
				assert.Equal(t, "application/json", r.header.Get("Content-Type"))
			}
		})
	}
}

// Section 4.6: the deletion of an entry returns a new task that tracks the deployment. The entry is removed at once.
func TestSection46DeleteEntry(t *testing.T) {
	t.Parallel()
	const always = `"id":"task-1","uri":"/tasks/task-1","operation":"networklist-update","begin_time":"2026-11-20T12:00:00.000Z",
		"user":{"id":"alice","uri":"/users/alice"},"target":{"id":"l","uri":"/config/networklists/l"}`
	for name, tc := range map[string]struct {
		duration, advance time.Duration
		after, later      string
	}{
		"two seconds": {
			0, 1500 * time.Millisecond,
			`"status":"IN_PROGRESS","complete":false,"progress":0,"last_updated":"2026-11-20T12:00:00.000Z"`,
			`"status":"IN_PROGRESS","complete":false,"progress":75,"last_updated":"2026-11-20T12:00:01.500Z"`,
		},
		"a minute": {
			time.Minute, time.Minute,
			`"status":"IN_PROGRESS","complete":false,"progress":0,"last_updated":"2026-11-20T12:00:00.000Z"`,
			`"status":"COMPLETE","complete":true,"progress":100,"last_updated":"2026-11-20T12:01:00.000Z","end_time":"2026-11-20T12:01:00.000Z"`,
		},
		"at once": {
			-1, time.Hour,
			`"status":"COMPLETE","complete":true,"progress":100,"last_updated":"2026-11-20T12:00:00.000Z","end_time":"2026-11-20T12:00:00.000Z"`,
			`"status":"COMPLETE","complete":true,"progress":100,"last_updated":"2026-11-20T12:00:00.000Z","end_time":"2026-11-20T12:00:00.000Z"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{DeployDuration: tc.duration})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: addresses(0, 3)})
			id := f.entryID("l", 1)
			r := f.do(http.MethodDelete, lists+"/l/"+id, "")
			assert.Equal(t, 200, r.status)
			assert.JSONEq(t, `{`+always+`,`+tc.after+`}`, r.body)
			assert.Equal(t, []string{"10.0.0.0", "10.0.0.2"}, f.Entries("l"))
			f.Clock().Advance(tc.advance)
			assert.JSONEq(t, `{`+always+`,`+tc.later+`}`, f.get("/tasks/task-1").body)
			assert.Equal(t, 404, f.get(lists+"/l/entries/"+id).status)
			assert.Equal(t, 404, f.do(http.MethodDelete, lists+"/l/"+id, "").status)
			assert.Equal(t, []string{"task-1"}, f.items("/tasks?operation=networklist-update", "id"))
		})
	}
}

// Section 2.6: entries_batch_deletion_uri removes all entries and keeps the list. Open point 24 is about its method.
func TestSection26BatchDeletion(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut} {
		for _, path := range []string{"", lists + "/{list}/entries/{entry}"} {
			f := start(t, testserver.Config{Dialect: testserver.Dialect{BatchDeletionMethod: method, EntryDeletePath: path}})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Name: "kept", Entries: addresses(0, 500)})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "other", Entries: addresses(0, 1)})
			address, _ := f.get(lists + "/l").object(t)["entries_batch_deletion_uri"].(string)
			r := f.do(method, address, "")
			assert.Equal(t, 200, r.status)
			assert.Equal(t, "networklist-update", r.object(t)["operation"])
			assert.Equal(t, []string{}, f.Entries("l"))
			assert.Equal(t, "kept", f.get(lists + "/l").object(t)["name"])
			assert.Equal(t, []string{}, f.items(lists+"/l/entries", "id"))
			assert.Len(t, f.Entries("other"), 1)
			assert.Equal(t, 200, f.do(method, address, "").status, "again")
			assert.Equal(t, 200, f.add("l", "10.0.0.7").status)
			assert.Equal(t, []string{"10.0.0.7"}, f.Entries("l"))
		}
	}
}

// Any changes keep the order of addition. The reference is a plain slice.
func TestEntriesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l"})
	dice := rand.New(rand.NewPCG(1, 2))
	all, model := addresses(0, 400), []string{}
	for step := range 3_000 {
		text := all[dice.IntN(400)]
		if at := slices.Index(model, text); dice.IntN(2) == 0 {
			f.ChangeEntries("l", nil, []string{text})
			if at >= 0 {
				model = slices.Delete(model, at, at+1)
			}
		} else {
			f.ChangeEntries("l", []string{text}, nil)
			if at < 0 {
				model = append(model, text)
			}
		}
		if step%97 == 0 {
			require.Equal(t, model, f.Entries("l"), step)
		}
	}
	assert.Equal(t, model, f.Entries("l"))
	assert.Equal(t, model, f.items(lists+"/l/entries?count=400", "entry"))
	for len(model) > 3 { // one after the other, without a read between
		f.ChangeEntries("l", nil, model[:1])
		model = model[1:]
	}
	f.ChangeEntries("l", []string{"192.0.2.1"}, nil)
	assert.Equal(t, append(model, "192.0.2.1"), f.Entries("l"))
}

// Section 8, with many concurrent clients: the list never exceeds its limit, and each entry is deleted once.
func TestSection8EntryLimitsHoldConcurrently(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: addresses(0, 48_000)})
	victim := f.entryID("l", 0)
	var mu sync.Mutex
	statuses := map[string]int{}
	var wg sync.WaitGroup
	send := func(what, method, path, body string) {
		wg.Go(func() {
			r, err := f.try(method, path, body)
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			statuses[fmt.Sprint(what, " ", r.status)]++
		})
	}
	for i := range 8 {
		send("add", http.MethodPost, lists+"/l/entries", entriesBody(addresses(50_000+500*i, 50_500+500*i)...))
		send("delete", http.MethodDelete, lists+"/l/"+victim, "")
		send("read", http.MethodGet, lists+"/l/entries?count=1000&page=48", "")
		wg.Go(func() { assert.LessOrEqual(t, len(f.Entries("l")), 50_000) })
	}
	wg.Wait()
	assert.Equal(t, map[string]int{"add 200": 4, "add 400": 4, "delete 200": 1, "delete 404": 7, "read 200": 8}, statuses)
	left := f.Entries("l")
	assert.Len(t, left, 49_999)
	slices.Sort(left)
	assert.Len(t, slices.Compact(left), 49_999)
}

// A cut after execution applies the change; a cut before does not. The same holds for a fault with a status.
func TestFaultsOnNetworkLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   testserver.Fault
		applied bool
	}{
		"before the body is read": {testserver.Fault{Cut: testserver.CutBeforeRead}, false},
		"after it":                {testserver.Fault{Cut: testserver.CutAfterRead}, false},
		"after execution":         {testserver.Fault{Cut: testserver.CutAfterExecute}, true},
		"in the response":         {testserver.Fault{Cut: testserver.CutBody}, true},
		"status":                  {testserver.Fault{Status: 503}, false},
		"status after execution":  {testserver.Fault{Status: 503, Execute: true}, true},
	} {
		for what, change := range map[string]struct {
			method, path, body string
			after              []string
		}{
			"add":         {http.MethodPost, lists + "/l/entries", entriesBody("10.0.0.2"), addresses(0, 3)},
			"delete":      {http.MethodDelete, lists + "/l/%s", "", addresses(1, 2)},
			"clear":       {http.MethodPost, lists + "/l/entries/deletions", "", []string{}},
			"delete list": {http.MethodDelete, lists + "/l", "", nil},
		} {
			t.Run(what+" cut "+name, func(t *testing.T) {
				t.Parallel()
				f := start(t, testserver.Config{Dialect: testserver.Dialect{ListDeleteReply: "task"}})
				f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: addresses(0, 2)})
				path := strings.ReplaceAll(change.path, "%s", f.entryID("l", 0))
				f.Fail(tc.fault)
				r, err := f.try(change.method, path, change.body)
				assert.Equal(t, tc.fault.Status == 0, err != nil)
				if tc.fault.Status != 0 {
					assert.Equal(t, tc.fault.Status, r.status)
				}
				want := addresses(0, 2)
				if tc.applied {
					want = change.after
				}
				assert.Equal(t, want, f.Entries("l"))
			})
		}
	}
}
