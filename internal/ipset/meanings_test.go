package ipset_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// A text that Parse refuses means itself; the letter case of a code is ignored.
func TestTextsThatAreNoEntryMeanThemselves(t *testing.T) {
	t.Parallel()
	assert.Equal(t, ipset.Entry{Text: "XK", Meaning: ipset.Meaning{Name: "XK"}}, ipset.Read("xk"))
	assert.Equal(t, ipset.Read("xk"), ipset.Opaque("xk"))
	assert.Equal(t, ipset.Meaning{Name: "192.0.02.1"}, ipset.Read("192.0.02.1").Meaning)
	assert.False(t, ipset.Read("192.0.02.1").HasAddresses())
	assert.True(t, ipset.Read("192.0.2.1").HasAddresses())
	assert.False(t, ipset.Opaque("192.0.2.1").HasAddresses())
	assert.Equal(t, "Kosovo", ipset.Read("Kosovo").Name)
}

func TestTheFirstOfSeveralEntriesIsKept(t *testing.T) {
	t.Parallel()
	var entries []ipset.Entry
	for _, text := range []string{"192.0.2.1/32", "de", "192.0.2.1", "192.0.2.0/31", "DE", "::ffff:192.0.2.1"} {
		entries = append(entries, ipset.Read(text))
	}
	assert.Equal(t, []string{"192.0.2.1/32", "DE", "192.0.2.0/31"}, ipset.Texts(ipset.Unique(entries)))
}

func TestSetsOfMeanings(t *testing.T) {
	t.Parallel()
	some := ipset.MeaningsOf([]string{"192.0.2.1", "192.0.2.1/32", "DE", "xk"})
	other := ipset.MeaningsOf([]string{"de", "XK", "192.0.2.0/24", "US"})
	assert.Len(t, some, 3)
	assert.Equal(t, 1, some.Without(other))
	assert.Equal(t, 2, other.Without(some))
	texts := []string{"::ffff:192.0.2.1", "192.0.2.2", "XK", "fr"}
	assert.Equal(t, []string{"192.0.2.2", "fr"}, some.Lacking(texts))
	assert.Equal(t, []string{"::ffff:192.0.2.1", "192.0.2.2", "XK", "fr"}, texts, "they are the caller's")
}

func TestTextsAndEntriesThatAreTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		texts, entries []string
		want           bool
	}{
		{nil, nil, true},
		{[]string{"192.0.2.1", "de"}, []string{"DE", "192.0.2.1"}, true},
		{[]string{"192.0.2.1/32", "192.0.2.2"}, []string{"192.0.2.2/32", "192.0.2.1"}, true},
		{[]string{"192.0.2.1", "192.0.2.1", "192.0.2.2"}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.2"}, false},
		{[]string{"192.0.2.1"}, []string{"192.0.2.1", "192.0.2.1"}, false},
		{[]string{"192.0.2.1", "192.0.2.2"}, []string{"192.0.2.1"}, false},
		{[]string{"192.0.2.1"}, []string{"192.0.2.2"}, false},
	} {
		same := ipset.Same(tt.texts, tt.entries, func(text *string) ipset.Entry { return ipset.Read(*text) })
		assert.Equal(t, tt.want, same, "%v and %v", tt.texts, tt.entries)
	}
}

func TestRangesThatHoldAllIPv4(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"::/0": true, "::/64": true, "::ffff:0:0/95": true, "::ffff:0:0/96": true,
		"::ffff:0:0/97": false, "::/97": false, "2001:db8::/32": false, "::fffe:0:0/96": false,
	} {
		assert.Equal(t, want, ipset.HoldsMappedIPv4(netip.MustParsePrefix(text)), text)
	}
}
