package listorder

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

// block returns the range of this length around the i-th of the blocks of /30 from 10.0.0.0 on, offset addresses later.
func block(i, offset, bits int) netip.Prefix {
	n := 10<<24 + 4*i + offset
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), bits).Masked()
}

// The search looks at each range and group a few times per order that it tries. This holds even if a list holds a range
// many times, or is so large that many groups are open at once. A quadratic search looks at millions here.
func TestTheSearchIsNotQuadratic(t *testing.T) {
	t.Parallel()
	const n = 2_000
	for name, tt := range map[string]struct {
		build func(i int) (add, remove []netip.Prefix) // changes of the i-th block
		limit int
	}{
		"the same range many times": {func(i int) (add, remove []netip.Prefix) {
			return []netip.Prefix{block(i, 0, 32)}, []netip.Prefix{block(0, 0, 8)}
		}, n},
		"the same range many times, and others within it": {func(i int) (add, remove []netip.Prefix) {
			return []netip.Prefix{block(i, 0, 32)}, []netip.Prefix{block(0, 0, 8), block(i, 0, 31)}
		}, n},
		"twice as large as allowed, each addition replaces two": {func(i int) (add, remove []netip.Prefix) {
			return []netip.Prefix{block(i, 0, 31)}, []netip.Prefix{block(i, 0, 32), block(i, 1, 32)}
		}, n},
		"larger than allowed, some additions replace two and the others narrow one": {func(i int) (add, remove []netip.Prefix) {
			if i%2 == 0 {
				return []netip.Prefix{block(i, 0, 31)}, []netip.Prefix{block(i, 0, 32), block(i, 1, 32)}
			}
			return []netip.Prefix{block(i, 0, 32)}, []netip.Prefix{block(i, 0, 31)}
		}, n},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var add, remove []netip.Prefix
			for i := range n {
				a, r := tt.build(i)
				add, remove = append(add, a...), append(remove, r...)
			}
			p := newProtection(nil, add, remove, true)
			g := groupsOf(p)
			for _, b := range g.bounds() {
				trial := newTrial(g, p.clone(), b, tt.limit-len(remove), n)
				o := trial.run()
				assert.Len(t, o.add, len(add))
				assert.Len(t, o.remove, len(remove))
				assert.Positive(t, trial.visited)
				assert.Less(t, trial.visited, 5*(len(add)+len(remove)), "%+v", b)
			}
		})
	}
}
