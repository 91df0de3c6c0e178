package lists_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// entries reads texts as those of a list, each with an id of its own.
func entries(texts ...string) []lists.Entry {
	all := make([]lists.Entry, len(texts))
	for i, text := range texts {
		all[i] = lists.Entry{ID: fmt.Sprint("id", i), Text: text, Meaning: lists.Read(text)}
	}
	return all
}

// changes returns the changes from one list to another.
func changes(t testing.TB, held, desired []string) *lists.Changes {
	t.Helper()
	d, err := lists.NewDesired(t.Context(), desired, nil, 50_000)
	require.NoError(t, err)
	return d.Compare(entries(held...), false, false)
}

// Each row is a rule of the order. A step is written as its additions and its removals, and most and call are the Limits.
func TestOrderRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, held, desired string
		most, call          int
		steps               string
		uncovered           int
	}{
		{
			"with room: all additions, then all removals", "192.0.2.2 192.0.2.1", "203.0.113.2 203.0.113.1",
			4, 1, "+203.0.113.2 +203.0.113.1 -192.0.2.2 -192.0.2.1", 0,
		},
		{"nothing to change: no step", "192.0.2.1", "192.0.2.1", 1, 1, "", 0},
		{
			"a removal that no addition covers makes room", "192.0.2.0/25 192.0.2.128/25 203.0.113.9", "192.0.2.0/24",
			3, 1, "-203.0.113.9 | +192.0.2.0/24 -192.0.2.0/25 -192.0.2.128/25", 0,
		},
		{
			"an addition that covers no removal comes last", "192.0.2.0/25 192.0.2.128/25 198.51.100.9", "198.51.100.1 192.0.2.0/24",
			3, 1, "-198.51.100.9 | +192.0.2.0/24 -192.0.2.0/25 | +198.51.100.1 -192.0.2.128/25", 0,
		},
		{
			"without room a gap opens", "192.0.2.0/25 192.0.2.128/25", "192.0.2.0/24",
			2, 1, "-192.0.2.0/25 | +192.0.2.0/24 -192.0.2.128/25", 1,
		},
		{
			"as many additions as fit come before the gap", "192.0.2.0/24", "192.0.2.192/26 192.0.2.0/25 192.0.2.128/26",
			3, 9, "+192.0.2.0/25 +192.0.2.128/26 -192.0.2.0/24 | +192.0.2.192/26", 1,
		},
		{
			"both sides in the order of their addresses", "192.0.2.4 192.0.2.0 192.0.2.2", "192.0.2.2/31 192.0.2.4/31 192.0.2.0/31",
			4, 1, "+192.0.2.0/31 -192.0.2.0 | +192.0.2.2/31 -192.0.2.2 | +192.0.2.4/31 -192.0.2.4", 2,
		},
		{
			"spare removals only for one call at a time", "192.0.2.1 192.0.2.2 192.0.2.3", "203.0.113.1 203.0.113.2 203.0.113.3",
			3, 2, "-192.0.2.1 -192.0.2.2 | +203.0.113.1 +203.0.113.2 -192.0.2.3 | +203.0.113.3", 0,
		},
		{
			"no more removals than the additions need", "192.0.2.2 203.0.113.1 203.0.113.2 203.0.113.3", "192.0.2.2/31 198.51.100.1",
			5, 9, "+192.0.2.2/31 -203.0.113.1 | +198.51.100.1 -203.0.113.2 -203.0.113.3 -192.0.2.2", 0,
		},
		{
			"a list with more entries than it may have", "192.0.2.1 192.0.2.2 192.0.2.3", "203.0.113.1",
			2, 9, "-192.0.2.1 -192.0.2.2 | +203.0.113.1 -192.0.2.3", 0,
		},
		{"countries cover nothing", "DE FR", "DE GB", 2, 1, "-FR | +GB", 0},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			c := changes(t, strings.Fields(tt.held), strings.Fields(tt.desired))
			o := c.Order(lists.Limits{List: tt.most, Call: tt.call})
			var steps []string
			for _, step := range o.Steps {
				var parts []string
				for _, e := range step.Add {
					parts = append(parts, "+"+e.Text)
				}
				for _, i := range step.Remove {
					parts = append(parts, "-"+c.Held[i].Text)
				}
				steps = append(steps, strings.Join(parts, " "))
			}
			assert.Equal(t, tt.steps, strings.Join(steps, " | "))
			assert.Equal(t, tt.uncovered, o.Uncovered)
		})
	}
}

// At most 100 gaps are open at a time.
func TestManyGaps(t *testing.T) {
	t.Parallel()
	var held, desired []string
	for i := range 128 {
		held = append(held, fmt.Sprintf("198.51.100.%d", 2*i))
		desired = append(desired, fmt.Sprintf("198.51.100.%d/31", 2*i))
	}
	o := changes(t, held, desired).Order(lists.Limits{List: 128, Call: 1000})
	var counts [][2]int
	for _, step := range o.Steps {
		counts = append(counts, [2]int{len(step.Add), len(step.Remove)})
	}
	assert.Equal(t, [][2]int{{0, 100}, {100, 28}, {28, 0}}, counts)
	assert.Equal(t, 128, o.Uncovered)
}

// space is a set of the 64 addresses of 198.51.100.0/26.
type space uint64

func spaceOf(all []lists.Entry) (s space) {
	for _, e := range all {
		for i := range 64 {
			if e.Prefix.IsValid() && e.Prefix.Contains(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})) {
				s |= 1 << i
			}
		}
	}
	return s
}

// someRange returns a random range of the space. Half of the lists have many ranges within each other.
func someRange(r *rand.Rand, nested bool) netip.Prefix {
	bits := 32 - r.IntN(2+r.IntN(5))
	if nested {
		bits = 27 + r.IntN(6)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(r.IntN(64))}), bits).Masked()
}

// smallLists returns a random list that is full or nearly so, and another one in which most entries are wider or narrower
// than in the first.
func smallLists(r *rand.Rand, most int) (held, desired []string) {
	part := func(p netip.Prefix, n byte) string {
		at := p.Addr().As4()
		at[3] += n * byte(1<<(31-p.Bits()))
		return netip.PrefixFrom(netip.AddrFrom4(at), p.Bits()+1).String()
	}
	nested := r.IntN(2) == 0
	for n := most - r.IntN(3)*r.IntN(3); len(held) < n; {
		p := someRange(r, nested)
		held = append(held, p.String())
		switch kind := r.IntN(12); {
		case kind == 0:
			desired = append(desired, p.String())
		case kind < 7 && p.Bits() > 27:
			desired = append(desired, netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked().String())
		case kind < 9 && p.Bits() < 32:
			desired = append(desired, part(p, 0))
		case kind < 11 && p.Bits() < 32:
			desired = append(desired, part(p, 0), part(p, 1))
		}
	}
	for len(desired) < most && r.IntN(2) > 0 {
		desired = append(desired, someRange(r, nested).String())
	}
	return held, desired
}

// With small lists, the numbers of an order are those of a simulation. A gap is a removal of an entry that uncovers an
// address that was covered before and will be covered afterwards. An order may announce more gaps than happen.
func TestOrdersOfSmallLists(t *testing.T) {
	t.Parallel()
	limits := lists.Limits{List: 8, Call: 3}
	full := 0
	for seed := range uint64(1_000) {
		held, desired := smallLists(rand.New(rand.NewPCG(seed, 1)), limits.List)
		c := changes(t, held, desired)
		if c.Size() > limits.List {
			continue
		}
		o := c.Order(limits)
		kept, removed := c.Split()
		before, after := spaceOf(c.Held), spaceOf(slices.Concat(kept, c.Add))
		now, peak, gaps := slices.Clone(c.Held), len(c.Held), 0
		var addedAll, removedAll []lists.Entry
		for _, step := range o.Steps {
			for part := range slices.Chunk(step.Add, limits.Call) {
				now, addedAll = append(now, part...), append(addedAll, part...)
			}
			peak = max(peak, len(now))
			for _, i := range step.Remove {
				at := slices.Index(now, c.Held[i])
				was := spaceOf(now)
				now, removedAll = slices.Delete(now, at, at+1), append(removedAll, c.Held[i])
				if was&before&after&^spaceOf(now) != 0 {
					gaps++
				}
			}
		}
		require.ElementsMatch(t, c.Add, addedAll, seed)
		require.ElementsMatch(t, removed, removedAll, seed)
		require.LessOrEqual(t, peak, max(limits.List, len(held)), seed)
		require.LessOrEqual(t, gaps, o.Uncovered, "seed %d: %d gaps, %d announced", seed, gaps, o.Uncovered)
		if len(c.Held)+len(c.Add) > limits.List {
			full++
		}
	}
	assert.Greater(t, full, 400)
}
