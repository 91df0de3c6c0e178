package lists

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Removals returns how many of size entries a limit allows removing: -1 all of them, and 0 a fifth. Of a small list that
// is up to three entries, but never more than half, because an empty feed must not empty a list.
func Removals(limit, size int) (allowed int) {
	switch limit {
	case -1:
		return size
	case 0:
		return max(size/5, min(3, size/2))
	default:
		return limit
	}
}

// AnyWidth allows ranges of any width.
const AnyWidth = -1

// Additions holds the limits for added entries.
type Additions struct {
	Most       int // maximum number of entries
	WidestIPv4 int // prefix length of the widest allowed range; AnyWidth allows all
	WidestIPv6 int
	Never      []netip.Prefix // ranges that no added one may overlap
}

// Overlap reports whether two ranges have an address in common. IPv4 ranges are compared in IPv4-mapped form, in which
// a service may match IPv4 clients. An invalid range overlaps none.
func Overlap(a, b netip.Prefix) bool { return inIPv6(a).Overlaps(inIPv6(b)) }

// Covered returns those of some sorted addresses, all in IPv6 form, that a range covers.
func Covered(sorted []netip.Addr, p netip.Prefix) []netip.Addr {
	p = inIPv6(p)
	from, _ := slices.BinarySearchFunc(sorted, p.Masked().Addr(), netip.Addr.Compare)
	to := from
	for to < len(sorted) && p.Contains(sorted[to]) {
		to++
	}
	return sorted[from:to]
}

func inIPv6(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4() {
		return p
	}
	return netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), mappedIPv4.Bits()+p.Bits())
}

// Refused yields the option and the reason of each violation of the limits. place returns where an added entry comes
// from. An IPv6 range that contains all IPv4-mapped addresses counts as 0.0.0.0/0, because a service may match IPv4
// clients in that form.
func (a Additions) Refused(added []Entry, place func(i int) string) iter.Seq2[string, string] {
	return func(yield func(option, reason string) bool) {
		name := func(i int) string { return fmt.Sprintf("%s (%s)", redact.Line(added[i].Text), place(i)) }
		n, never := len(added), rangesOf(a.Never, inIPv6)
		ok := n <= a.Most || yield("MaxAdd", fmt.Sprintf(
			"%d entries would be added, for example %s, but at most %d are allowed; set MaxAdd to %d to allow it", n, name(0), a.Most, n))
		for i := 0; i < n && ok; i++ {
			p, bits := added[i].Prefix, added[i].Prefix.Bits()
			v4, but := p.Addr().Is4(), " would be added, but"
			if p.Addr().Is6() && bits < a.WidestIPv6 {
				ok = yield("WidestIPv6", name(i)+tooWide(but, "IPv6", a.WidestIPv6, bits))
			}
			if p.Addr().Is6() && bits <= mappedIPv4.Bits() && p.Contains(mappedIPv4.Addr()) {
				v4, bits, but = true, 0, " would be added. It contains all IPv4 addresses in their IPv6 form, but"
			}
			if ok && v4 && bits < a.WidestIPv4 {
				ok = yield("WidestIPv4", name(i)+tooWide(but, "IPv4", a.WidestIPv4, bits))
			}
			if ok && never.overlap(inIPv6(p)) {
				at := slices.IndexFunc(a.Never, func(n netip.Prefix) bool { return Overlap(p, n) })
				ok = yield("Never", fmt.Sprintf("%s would be added, but it overlaps %s; remove that from Never to allow it", name(i), a.Never[at]))
			}
		}
	}
}

// tooWide returns how to allow a range with a prefix of bits. For 0, which would mean the default, that is AnyWidth.
func tooWide(but, family string, widest, bits int) string {
	return fmt.Sprintf("%s the widest allowed %s range is /%d; set Widest%s to %d to allow it", but, family, widest, family, cmp.Or(bits, AnyWidth))
}
