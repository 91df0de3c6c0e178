// Package ipset knows what a network list can hold: addresses, ranges of them, and countries. It reads a text as an
// [Entry] whose [Meaning] can be compared, so that 192.0.2.1 and 192.0.2.1/32 are the same. A [Set] tells which
// addresses are covered.
//
// The package knows addresses and country codes. It may know nothing of lists, plans, HTTP and the SDK; its errors say
// what is wrong with a text, not where it stood. Its entry points are [Parse], [Read], [Aggregate] and [NewSet].
package ipset

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/text/language"
)

// Entry is a text and what it means. Two entries with the same meaning are the same (open point 27): 192.0.2.1 and
// 192.0.2.1/32, 192.0.2.7/24 and 192.0.2.0/24, ::ffff:192.0.2.1 and 192.0.2.1, de and DE.
type Entry struct {
	Text string // as it was written; a country code in upper case
	Meaning
}

// Meaning is the canonical form of an entry. It can be compared.
type Meaning struct {
	// Prefix is set if the entry is an address or a range: masked, and IPv4 in IPv6 as IPv4. An address is the prefix of its
	// full length.
	Prefix netip.Prefix
	// Name is set otherwise: the country in upper case, or the text itself if it is neither.
	Name string
}

// HasAddresses reports whether the entry is an address or a range.
func (m Meaning) HasAddresses() bool { return m.Prefix.IsValid() }

// Parse reads an address, a range or a country code. It returns an error if the text is none of these.
func Parse(text string) (Entry, error) {
	if code := strings.ToUpper(text); len(text) == 2 && isCountry(code) {
		return Entry{Text: code, Meaning: Meaning{Name: code}}, nil
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" {
			return Entry{}, fmt.Errorf("%q has a zone, which means nothing outside of one machine", text)
		}
		addr = addr.Unmap()
		return Entry{Text: text, Meaning: Meaning{Prefix: netip.PrefixFrom(addr, addr.BitLen())}}, nil
	}
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return Entry{Text: text, Meaning: Meaning{Prefix: unmap(prefix).Masked()}}, nil
	}
	return Entry{}, fmt.Errorf("%q is neither an IP address, a CIDR range nor an ISO 3166-1 country code", text)
}

// mappedIPv4 are the IPv6 addresses that stand for all of IPv4.
var mappedIPv4 = netip.MustParsePrefix("::ffff:0:0/96")

// unmap returns the IPv4 range that a prefix writes as IPv4 in IPv6, and any other prefix as it is.
func unmap(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= mappedIPv4.Bits() {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedIPv4.Bits())
	}
	return p
}

// HoldsMappedIPv4 reports whether an IPv6 prefix contains the IPv6 form of every IPv4 address.
func HoldsMappedIPv4(p netip.Prefix) bool {
	return p.Bits() <= mappedIPv4.Bits() && p.Contains(mappedIPv4.Addr())
}

// withdrawn are codes of countries that are no more (ISO 3166-3), which the library still knows as countries.
const withdrawn = "AN CS NT SU YU"

// isCountry reports whether a code in upper case is assigned in ISO 3166-1 alpha-2. The library also knows reserved
// codes, which have no number of UN M.49, and private ones.
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.String() == code && region.Canonicalize() == region &&
		region.M49() != 0 && !region.IsPrivateUse() && !strings.Contains(withdrawn, code)
}

// Read reads a text that a service holds, whatever it is: as [Parse] does, or else as [Opaque] does.
func Read(text string) Entry {
	e, err := Parse(text)
	if err != nil {
		return Opaque(text)
	}
	return e
}

// Opaque returns an entry that means its own text. A service may hold what [Parse] does not accept, such as XK for the
// Kosovo, EU, or an address in a spelling of its own. The letter case of a code does not count.
func Opaque(text string) Entry {
	if len(text) == len("XK") {
		text = strings.ToUpper(text)
	}
	return Entry{Text: text, Meaning: Meaning{Name: text}}
}

// Aggregate returns the fewest entries that cover the same addresses, no more and no less. Entries without addresses are
// left out.
func Aggregate(entries []Entry) []Entry {
	prefixes := setOf(entries, func(e Entry) netip.Prefix { return e.Prefix }).Prefixes()
	merged := make([]Entry, len(prefixes))
	for i, p := range prefixes {
		text := p.String()
		if p.IsSingleIP() {
			text = p.Addr().String()
		}
		merged[i] = Entry{text, Meaning{Prefix: p}}
	}
	return merged
}

// Texts returns the text of each entry.
func Texts(entries []Entry) []string {
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.Text
	}
	return texts
}
