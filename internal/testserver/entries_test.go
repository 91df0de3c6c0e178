package testserver_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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

func (f fake) add(list string, texts ...string) response {
	f.t.Helper()
	var body strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&body, `%c{"entry":%q}`, "[,"[min(i, 1)], text)
	}
	return f.do(http.MethodPost, "/config/networklists/"+list+"/entries", body.String()+"]")
}

// Open points 26 and 27: values with the same meaning are one entry, with the text of the first one.
func TestSection26SameEntries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first, second string
		same          bool
	}{
		{"192.0.2.1", "192.0.2.1/32", true},
		{"192.0.2.0", "192.0.2.0/24", false},
		{"192.0.2.77/24", "192.0.2.0/24", true},
		{"0.0.0.0/0", "192.0.2.1/0", true},
		{"2001:db8::1", "2001:DB8:0:0::0001", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "::192.0.2.1", false},
		{"::ffff:192.0.2.9/120", "192.0.2.0/24", true},
		{"::ffff:0:0/95", "0.0.0.0/0", false},
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
		"as many as a list may have":     {45_000, addresses(45_000, 50_000), 200, 50_000},
		"one more, nothing is added":     {45_001, addresses(45_001, 50_001), 400, 45_001},
		"one of them there already":      {45_001, addresses(45_000, 50_000), 200, 50_000},
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
