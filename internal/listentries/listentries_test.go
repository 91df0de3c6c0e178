package listentries_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listentries"
)

const (
	noEntry = " is neither an IP address, a CIDR range nor an ISO 3166-1 country code"
	notOfIP = " does not belong to a list of type IP"
	notGEO  = " does not belong to a list of type GEO"
)

// problems collects what a function passes to its Wrong, up to most problems.
type problems struct {
	most  int
	found []string
}

func (p *problems) wrong(i int, problem error) bool {
	p.found = append(p.found, fmt.Sprintf("%d: %v", i, problem))
	return len(p.found) < p.most
}

// A list holds addresses and ranges, or countries. (Service document, section 2.6.)
func TestTypesOfEntries(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"192.0.2.1": "IP", "2001:db8::/32": "IP", "0.0.0.0/0": "IP", "de": "GEO", "US": "GEO"} {
		assert.Equal(t, want, listentries.TypeOf(ipset.Read(text)), text)
	}
}

// Read returns the readable entries of one type, and each other text as a problem with its place.
func TestTextsOfOneType(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		listType string
		texts    []string
		most     int
		want     []string
		found    []string
	}{
		"none":                   {most: 9, want: []string{}},
		"addresses":              {texts: []string{"192.0.2.1", "2001:db8::/32"}, most: 9, want: []string{"192.0.2.1", "2001:db8::/32"}},
		"the first decides":      {texts: []string{"de", "192.0.2.1", "us"}, most: 9, want: []string{"DE", "US"}, found: []string{`1: "192.0.2.1"` + notGEO}},
		"the first readable one": {texts: []string{"x", "192.0.2.1", "US"}, most: 9, want: []string{"192.0.2.1"}, found: []string{`0: "x"` + noEntry, `2: "US"` + notOfIP}},
		"the list decides":       {listType: "IP", texts: []string{"de", "192.0.2.1"}, most: 9, want: []string{"192.0.2.1"}, found: []string{`0: "de"` + notOfIP}},
		"twice is no problem":    {texts: []string{"192.0.2.1", "192.0.2.1"}, most: 9, want: []string{"192.0.2.1", "192.0.2.1"}},
		"enough problems":        {texts: []string{"a", "b", "192.0.2.1", "c"}, most: 2, want: []string{}, found: []string{`0: "a"` + noEntry, `1: "b"` + noEntry}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problems{most: tt.most}
			assert.Equal(t, tt.want, ipset.Texts(listentries.Read(tt.listType, tt.texts, p.wrong)))
			assert.Equal(t, tt.found, p.found)
		})
	}
}

// What no list can hold is found before the list is known. Unreadable texts may be in the list already.
func TestWhatNoListCanHold(t *testing.T) {
	t.Parallel()
	const most = 2
	for name, tt := range map[string]struct {
		texts []string
		most  int // problems
		want  []string
		found []string
	}{
		"nothing":                    {most: 9, want: []string{}},
		"the first of a meaning":     {texts: []string{"192.0.2.1/32", "192.0.2.1", "x", "x"}, most: 9, want: []string{"192.0.2.1/32", "x"}},
		"the unreadable come last":   {texts: []string{"xk", "de", "XK", "DE"}, most: 9, want: []string{"DE", "XK"}},
		"more than a list can hold":  {texts: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, most: 9, want: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}},
		"both types":                 {texts: []string{"x", "192.0.2.1", "de", "192.0.2.2", "us"}, most: 9, found: []string{`2: "de"` + notOfIP, `4: "us"` + notOfIP}},
		"both types, countries":      {texts: []string{"de", "192.0.2.1"}, most: 9, found: []string{`1: "192.0.2.1"` + notGEO}},
		"too many unreadable":        {texts: []string{"x", "y", "192.0.2.1", "z"}, most: 9, found: []string{`0: "x"` + noEntry, `1: "y"` + noEntry, `3: "z"` + noEntry}},
		"as many unreadable as fit":  {texts: []string{"x", "y", "x"}, most: 9, want: []string{"x", "y"}},
		"too many, enough problems":  {texts: []string{"x", "y", "z"}, most: 1, found: []string{`0: "x"` + noEntry}},
		"too many among countries":   {texts: []string{"x", "y", "z", "de"}, most: 9, found: []string{`0: "x"` + noEntry, `1: "y"` + noEntry, `2: "z"` + noEntry, `3: "de"` + notOfIP}},
		"countries, then unreadable": {texts: []string{"de", "x", "y", "z"}, most: 9, found: []string{`1: "x"` + noEntry, `2: "y"` + noEntry, `3: "z"` + noEntry}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problems{most: tt.most}
			d, err := listentries.Desire(t.Context(), tt.texts, most, p.wrong)
			require.NoError(t, err)
			require.NotNil(t, d)
			assert.Equal(t, tt.found, p.found)
			if tt.found == nil {
				assert.Equal(t, tt.want, ipset.Texts(d.Entries().Entries))
				assert.Equal(t, len(tt.want), d.Size())
			}
		})
	}
}

// A list may keep an unreadable text that it holds. Everything new must be readable and of its type.
func TestWhatAListCannotHold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		listType   string
		has, texts []string
		most       int
		found      []string
	}{
		"nothing":                   {listType: "IP", most: 9},
		"fits":                      {listType: "IP", texts: []string{"192.0.2.1"}, most: 9},
		"an unknown type":           {listType: "ASN", texts: []string{"192.0.2.1"}, most: 9, found: []string{`0: "192.0.2.1" does not belong to a list of type ASN`}},
		"the other type":            {listType: "GEO", texts: []string{"192.0.2.1", "192.0.2.2"}, most: 9, found: []string{`0: "192.0.2.1"` + notGEO, `1: "192.0.2.2"` + notGEO}},
		"the other type, one shown": {listType: "GEO", texts: []string{"192.0.2.1", "192.0.2.2"}, most: 1, found: []string{`0: "192.0.2.1"` + notGEO}},
		"unreadable and held":       {listType: "GEO", has: []string{"XK"}, texts: []string{"de", "xk"}, most: 9},
		"unreadable and new":        {listType: "GEO", has: []string{"EU"}, texts: []string{"de", "xk"}, most: 9, found: []string{`1: "xk"` + noEntry}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problems{most: tt.most}
			d, err := listentries.Desire(t.Context(), tt.texts, 100, p.wrong)
			require.NoError(t, err)
			require.Empty(t, p.found)
			d.Check(tt.listType, func() ipset.Meanings { return ipset.MeaningsOf(tt.has) }, p.wrong)
			assert.Equal(t, tt.found, p.found)
		})
	}
}

func TestMergedEntries(t *testing.T) {
	t.Parallel()
	for texts, want := range map[string]string{
		"192.0.2.0 192.0.2.1 x 192.0.2.2/31": "192.0.2.0/30 x",
		"de us":                              "DE US",
		"x y":                                "x y",
		"":                                   "",
	} {
		d, err := listentries.Desire(t.Context(), strings.Fields(texts), 100, nil)
		require.NoError(t, err)
		d.Aggregate()
		assert.Equal(t, want, strings.Join(ipset.Texts(d.Entries().Entries), " "))
	}
}

// Desire checks the context at every 1024th text, because millions of texts take seconds.
func TestManyTextsEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n, want := range map[int]error{1023: nil, 1024: context.Canceled, 5000: context.Canceled} {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = "192.0.2.1"
		}
		_, err := listentries.Desire(ctx, texts, 100, nil)
		assert.Equal(t, want, err, "%d texts", n)
		d, err := listentries.Desire(t.Context(), texts, 100, nil)
		require.NoError(t, err)
		assert.Equal(t, 1, d.Size())
	}
}
