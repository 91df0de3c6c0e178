package listorder

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// gap marks an address that is in no range.
const gap = -1

// inTurn returns adjacent ranges from 2001:db8:: on, with 2 to the power of each exponent addresses.
func inTurn(exponents ...int) (all []netip.Prefix) {
	at := new(big.Int).Lsh(big.NewInt(0x20010db8), 96)
	for _, e := range exponents {
		if e == gap {
			at.Add(at, big.NewInt(1))
			continue
		}
		all = append(all, netip.PrefixFrom(netip.AddrFrom16([16]byte(at.Bytes())), 128-e))
		at.Add(at, new(big.Int).Lsh(big.NewInt(1), uint(e)))
	}
	return all
}

// upTo returns the numbers from one to another, up or down.
func upTo(from, to int) (all []int) {
	step := 1
	if to < from {
		step = -1
	}
	for ; from != to; from += step {
		all = append(all, from)
	}
	return append(all, to)
}

// The own addresses of a range are those in none of the ranges within it. A range that others fill has none. A range
// with a gap has at least one, even if a float cannot hold the numbers.
func TestTheAddressesOfARange(t *testing.T) {
	t.Parallel()
	whole := prefixes("2001:db8::/32")
	for name, tt := range map[string]struct {
		ranges []netip.Prefix // sorted
		own    []float64      // number of own addresses of the first ranges
	}{
		"apart":            {prefixes("192.0.2.0/31", "192.0.2.4/30"), []float64{2, 4}},
		"a gap at the end": {prefixes("192.0.2.0/30", "192.0.2.0/31", "192.0.2.2/32"), []float64{1, 2, 1}},
		"a gap in between": {prefixes("192.0.2.0/30", "192.0.2.0/32", "192.0.2.2/31"), []float64{1, 1, 2}},
		"a gap in front":   {prefixes("192.0.2.0/30", "192.0.2.1/32", "192.0.2.2/31"), []float64{1, 1, 2}},
		"filled":           {prefixes("192.0.2.0/30", "192.0.2.0/31", "192.0.2.2/32", "192.0.2.3/32"), []float64{0, 2, 1, 1}},
		"filled in turn":   {prefixes("192.0.2.0/31", "192.0.2.0/32", "192.0.2.1/32", "192.0.2.2/32"), []float64{0, 1, 1, 1}},
		"all of IPv4":      {prefixes("0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1"), []float64{0, 1 << 31, 1 << 31}},
		"a large gap":      {prefixes("2001:db8::/32", "2001:db8::/128"), []float64{1 << 96, 1}},
		// If floats subtract the small numbers from 2 to the power of 96 first, 2 to the power of 43 are left.
		"filled, with small ones first": {slices.Concat(whole, inTurn(slices.Concat([]int{1}, upTo(1, 95))...)), []float64{0, 2, 2, 4, 8}},
		// All but one address: floats leave nothing, because they round a half to an even number.
		"a gap that is lost in rounding": {
			slices.Concat(whole, inTurn(slices.Concat([]int{95, 42, 41}, upTo(40, 0), []int{gap}, upTo(43, 94))...)),
			[]float64{1, 1 << 95, 1 << 42, 1 << 41, 1 << 40},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &protection{ranges: make([]protectedRange, len(tt.ranges))}
			for i, r := range tt.ranges {
				p.ranges[i].prefix = r
			}
			p.build()
			for i, want := range tt.own {
				assert.InDelta(t, want, p.ranges[i].weight, 0, "%v", tt.ranges[i])
			}
		})
	}
}

// counted is the protection of a list, computed from scratch.
func counted(p *protection) (uncovered float64, gaps int, solo []int32, soloWeight []float64) {
	solo, soloWeight = make([]int32, len(p.ranges)), make([]float64, len(p.ranges))
	for i := range p.ranges {
		r := &p.ranges[i]
		if !r.counts {
			continue
		}
		cover, holder := int32(0), int32(-1)
		for at := int32(i); at >= 0; at = p.ranges[at].parent {
			if cover += p.ranges[at].present; p.ranges[at].present > 0 && holder < 0 {
				holder = at
			}
		}
		switch cover {
		case 0:
			uncovered += r.weight
			gaps++
		case 1:
			solo[holder]++
			soloWeight[holder] += r.weight
		}
	}
	return uncovered, gaps, solo, soloWeight
}

// While ranges are added and removed, the uncovered addresses and those that each range covers alone equal a
// computation from scratch. Each range that covers more or less alone is reported, except the one that was added or
// removed.
func TestWhatIsCoveredIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 11))
		some := func(most int) (all []netip.Prefix) {
			for range 1 + r.IntN(most) {
				p := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(16))}), 28+r.IntN(5)).Masked()
				if !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
			return all
		}
		keep, add, remove := some(2), some(6), some(6)
		p := newProtection(keep, add, remove, true)
		check := func(told []int32, x int32, before []float64) {
			uncovered, gaps, solo, soloWeight := counted(p)
			require.InDelta(t, uncovered, p.uncovered, 0, "seed %d", seed)
			require.Equal(t, gaps, p.gaps, "seed %d", seed)
			for i := range p.ranges {
				require.Equal(t, solo[i], p.ranges[i].solo, "seed %d", seed)
				require.InDelta(t, soloWeight[i], p.ranges[i].soloWeight, 0, "seed %d", seed)
				require.Equal(t, solo[i] == 0, p.free(int32(i)))
				if before != nil && int32(i) != x && before[i] != soloWeight[i] {
					require.Contains(t, told, int32(i), "seed %d", seed)
				}
			}
		}
		check(nil, -1, nil)
		for range 40 {
			if len(p.ranges) == 0 {
				break
			}
			_, _, _, before := counted(p)
			x, told := int32(r.IntN(len(p.ranges))), []int32(nil)
			note := func(i int32) { told = append(told, i) }
			if p.ranges[x].present > 0 && r.IntN(2) == 0 {
				p.take(x, note)
			} else {
				p.put(x, note)
			}
			check(told, x, before)
		}
	}
}

// An address counts if the list covers it before and after, and no entry that stays covers it.
func TestWhichAddressesCount(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keep, add, remove []netip.Prefix
		counts            []string // the ranges whose own addresses count
	}{
		"replaced by a wider one": {nil, prefixes("192.0.2.0/31"), prefixes("192.0.2.0/32"), []string{"192.0.2.0/32"}},
		"replaced by narrower":    {nil, prefixes("192.0.2.0/32", "192.0.2.1/32"), prefixes("192.0.2.0/31"), []string{"192.0.2.0/32", "192.0.2.1/32"}},
		"a part stays":            {prefixes("192.0.2.1/32"), prefixes("192.0.2.0/30"), prefixes("192.0.2.0/31"), []string{"192.0.2.0/31"}},
		"all stays":               {prefixes("192.0.2.0/29"), prefixes("192.0.2.0/30"), prefixes("192.0.2.0/31"), nil},
		"nothing comes":           {nil, prefixes("192.0.2.4/31"), prefixes("192.0.2.0/31"), nil},
		"filled by others":        {nil, prefixes("192.0.2.0/30"), prefixes("192.0.2.0/31", "192.0.2.0/32", "192.0.2.1/32"), []string{"192.0.2.0/32", "192.0.2.1/32"}},
		"entries without addresses": {
			make([]netip.Prefix, 1), append(make([]netip.Prefix, 1), prefixes("192.0.2.0/31")...),
			append(make([]netip.Prefix, 1), prefixes("192.0.2.0/32")...),
			[]string{"192.0.2.0/32"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProtection(tt.keep, tt.add, tt.remove, true)
			var counts []string
			for _, r := range p.ranges {
				if r.counts {
					counts = append(counts, fmt.Sprint(r.prefix))
				}
			}
			assert.Equal(t, tt.counts, counts)
		})
	}
}
