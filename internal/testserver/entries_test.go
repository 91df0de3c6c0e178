package testserver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"

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
