package lists_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// Equal entries (open point 27): each row is one meaning in several spellings. The text of an entry stays as the caller
// wrote it, except that a country is in upper case (open point 28).
func TestEntriesThatAreTheSame(t *testing.T) {
	t.Parallel()
	seen := map[lists.Meaning]int{}
	rows := [][]string{
		{"192.0.2.1", "192.0.2.1/32", "::ffff:192.0.2.1", "::ffff:c000:201", "::ffff:192.0.2.1/128"},
		{"192.0.2.0/24", "192.0.2.77/24", "::ffff:192.0.2.0/120"},
		{"2001:db8::1", "2001:DB8:0:0::1", "2001:db8::1/128"},
		{"2001:db8::/32", "2001:db8:ffff::/32"},
		{"0.0.0.0/0", "203.0.113.9/0", "::ffff:203.0.113.9/96"},
		{"::/0", "2001:db8::/0"},
		{"DE", "de", "De"},
		{"US"},
	}
	for i, row := range rows {
		for _, text := range row {
			e, err := lists.Parse(text)
			require.NoError(t, err, text)
			if before, ok := seen[e.Meaning]; ok {
				assert.Equal(t, before, i, text)
			}
			if seen[e.Meaning] = i; len(text) == 2 {
				text = strings.ToUpper(text)
			}
			assert.Equal(t, text, e.Text)
		}
	}
	assert.Len(t, seen, len(rows))
}

// Texts that no list can hold.
func TestEntriesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "192.0.2.1 ", "192.0.2", "192.0.2.256", "192.0.02.1", "192.0.2.1/33", "192.0.2.1/-1", "192.0.2.1/", "2001:db8::/129",
		"2001:db8::g", "fe80::1%eth0", "fe80::%eth0/64", "fe80::1%eth/0",
		"192.0.2.1/24/24", "192.0.2.1/024", "de/24", "/", "/24", "192.0.2.1-192.0.2.9", "www.example.com", "D", "DEU", "276", "D1", "1D", " D", "D ", "@A", "[A", "\xffA", "A\x00", "Ä", "ÄÖ", "ı", // which is I in upper case ı in upper case is I
		"XX", "ZZ", "AA", "QQ", "EU", "UK", "AC", "XK", "AN", "CS", "SU", "YU", "NT", "UN",
	} {
		_, err := lists.Parse(text)
		require.Error(t, err, text)
	}
}

// ISO 3166-1 has 249 officially assigned codes.
func TestCountries(t *testing.T) {
	t.Parallel()
	count := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if e, err := lists.Parse(string(a) + string(b)); err == nil {
				assert.False(t, e.Prefix.IsValid())
				count++
			}
		}
	}
	assert.Equal(t, 249, count)
	for _, code := range []string{"AQ", "BQ", "CW", "GB", "HK", "PS", "SS", "SX", "TL", "TW", "UM", "VA", "ZW"} {
		_, err := lists.Parse(code)
		require.NoError(t, err, code)
	}
}

// NewDesired stops as soon as no list can have the texts. Impossible then names all that are
// unreadable, or one that is of another type than those before it.
func TestImpossibleTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		texts []string
		read  int
		bad   []int
	}{
		{[]string{"192.0.2.1", "DE", "192.0.2.2", "FR"}, 2, []int{1}},
		{[]string{"a", "192.0.2.1", "b", "c", "192.0.2.2", "d"}, 4, []int{0, 2, 3, 5}},
		{[]string{"a", "192.0.2.1", "b", "192.0.2.2"}, 4, nil},
	} {
		d, err := lists.NewDesired(t.Context(), tt.texts, nil, 2)
		require.NoError(t, err)
		assert.Len(t, d.Entries, tt.read, "%q", tt.texts)
		var bad []int
		for i := range d.Impossible(2) {
			bad = append(bad, i)
		}
		assert.Equal(t, tt.bad, bad, "%q", tt.texts)
	}
}

// Aggregate covers exactly the same addresses with ranges of which no two could be one.
func FuzzAggregate(f *testing.F) {
	f.Add([]byte{0, 32, 1, 32, 2, 31, 32, 26, 0, 29})
	f.Add([]byte{7, 30, 5, 29, 63, 32})
	f.Add([]byte{0, 6, 9, 6, 9, 5, 33, 6}) // single addresses
	f.Fuzz(func(t *testing.T, data []byte) {
		var texts []string
		for i := 0; i+1 < len(data) && i < 60; i += 2 {
			texts = append(texts, netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, data[i] % 64}), 26+int(data[i+1])%7).String())
		}
		d, err := lists.NewDesired(t.Context(), append(texts, "no entry"), nil, 50)
		require.NoError(t, err)
		d.Aggregate()
		last := len(d.Entries) - 1
		require.Equal(t, "no entry", d.Entries[last].Text)
		merged := d.Entries[:last]
		require.Equal(t, spaceOf(entries(texts...)), spaceOf(merged))
		for i, e := range merged {
			require.Equal(t, e.Meaning, lists.Read(e.Text))
			require.Equal(t, e.Prefix.IsSingleIP(), !strings.Contains(e.Text, "/"), e.Text)
			for _, other := range merged[:i] {
				require.False(t, e.Prefix.Overlaps(other.Prefix), "%v %v", e.Prefix, other.Prefix)
				require.False(t, e.Prefix.Bits() == other.Prefix.Bits() && netip.PrefixFrom(e.Prefix.Addr(), e.Prefix.Bits()-1).Contains(other.Prefix.Addr()))
			}
		}
	})
}

// Parse accepts what net/netip or the table of countries accepts, and nothing else. The meaning covers the address of
// the text, and parsing the meaning's text gives the same meaning.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "192.0.2.7/24", "2001:db8::1", "2001:db8::/32", "::ffff:192.0.2.1", "::ffff:192.0.2.1/120", "::ffff:192.0.2.1/95", "::/0", "fe80::1%eth0",
		"de", "DE", "XX", "192.0.2.1/33", "192.0.2.01", " 192.0.2.1", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, addrErr := netip.ParseAddr(text)
		prefix, prefixErr := netip.ParsePrefix(text)
		isAddr, isRange := addrErr == nil && addr.Zone() == "", prefixErr == nil
		got, err := lists.Parse(text)
		if err != nil {
			require.False(t, isAddr || isRange, "%q", text)
			return
		}
		switch {
		case isAddr:
			require.True(t, got.Prefix.IsValid())
			require.True(t, got.Prefix.IsSingleIP())
			require.Equal(t, addr.Unmap(), got.Prefix.Addr())
			require.Equal(t, text, got.Text)
		case isRange:
			require.True(t, got.Prefix.IsValid())
			require.Equal(t, got.Prefix.Masked(), got.Prefix)
			require.Equal(t, text, got.Text)
			if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
				require.True(t, got.Prefix.Contains(prefix.Addr().Unmap()))
				require.Equal(t, prefix.Bits()-96, got.Prefix.Bits())
			} else {
				require.Equal(t, prefix.Masked(), got.Prefix)
			}
		default:
			require.False(t, got.Prefix.IsValid())
			require.Len(t, got.Name, 2)
			require.True(t, strings.EqualFold(text, got.Name))
			require.Equal(t, got.Name, got.Text)
		}
		canonical := got.Name
		if got.Prefix.IsValid() {
			canonical = got.Prefix.String()
		}
		again, err := lists.Parse(canonical)
		require.NoError(t, err)
		require.Equal(t, got.Meaning, again.Meaning)
	})
}
