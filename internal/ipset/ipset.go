// Package ipset reads the entries of a network list: addresses, address ranges and country codes. It parses a text into
// an [Entry] whose [Meaning] can be compared, so that 192.0.2.1 and 192.0.2.1/32 are equal. A [Set] is a set of
// addresses.
//
// The package knows addresses and country codes. It must not know lists, plans, HTTP or the SDK. Its errors say what is
// wrong with a text, not where the text came from. Its entry points are [Parse], [Read], [Aggregate], [NewSet] and
// [NewDistinct].
package ipset

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/text/language"
)

// Entry is a text and its meaning. Two entries with the same meaning are equal (open point 27): 192.0.2.1 and
// 192.0.2.1/32, 192.0.2.7/24 and 192.0.2.0/24, ::ffff:192.0.2.1 and 192.0.2.1, de and DE.
type Entry struct {
	Text string // as written, except that a country code is in upper case
	Meaning
}

// Meaning is the canonical form of an entry. Compare it with ==.
type Meaning struct {
	// Prefix is set if the entry is an address or a range. It is masked, and IPv4 in IPv6 is written as IPv4. An
	// address is a prefix of full length.
	Prefix netip.Prefix
	// Name is set otherwise: the country in upper case, or the text itself if it is neither.
	Name string
}

// HasAddresses reports whether the entry is an address or a range.
func (m Meaning) HasAddresses() bool { return m.Prefix.IsValid() }

// Parse reads an address, a range or a country code. It returns an error if the text is none of these.
func Parse(text string) (Entry, error) {
	if len(text) == len("DE") {
		if code := strings.ToUpper(text); isCountry(code) {
			return Entry{Text: code, Meaning: Meaning{Name: code}}, nil
		}
	}
	if strings.Contains(text, "/") { // before ParseAddr, which would build an error for each range
		if prefix, err := netip.ParsePrefix(text); err == nil {
			return Entry{Text: text, Meaning: Meaning{Prefix: unmap(prefix).Masked()}}, nil
		}
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" {
			return Entry{}, fmt.Errorf("%q has a zone, which is only valid within one machine; remove it", text)
		}
		addr = addr.Unmap()
		return Entry{Text: text, Meaning: Meaning{Prefix: netip.PrefixFrom(addr, addr.BitLen())}}, nil
	}
	return Entry{}, fmt.Errorf("%q is neither an IP address, a CIDR range nor an ISO 3166-1 country code", text)
}

// mappedIPv4 are the IPv6 addresses that represent all IPv4 addresses.
var mappedIPv4 = netip.MustParsePrefix("::ffff:0:0/96")

// unmap converts an IPv4 range written as IPv4 in IPv6 to IPv4. It returns any other prefix unchanged.
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

// withdrawn are codes of former countries (ISO 3166-3), which the library still accepts as countries.
const withdrawn = "AN CS NT SU YU"

// isCountry reports whether a code in upper case is assigned in ISO 3166-1 alpha-2. The library also accepts private
// codes and reserved ones; the latter have no UN M.49 number.
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.String() == code && region.Canonicalize() == region &&
		region.M49() != 0 && !region.IsPrivateUse() && !strings.Contains(withdrawn, code)
}

// Read reads any text that a service may hold: like [Parse], or like [Opaque] if Parse returns an error.
func Read(text string) Entry {
	e, err := Parse(text)
	if err != nil {
		return Opaque(text)
	}
	return e
}

// Opaque returns an entry whose meaning is its own text. A service may hold texts that [Parse] does not accept, such as
// XK for Kosovo, EU, or an unusual spelling of an address. The letter case of a two-letter code is ignored.
func Opaque(text string) Entry {
	if len(text) == len("XK") {
		text = strings.ToUpper(text)
	}
	return Entry{Text: text, Meaning: Meaning{Name: text}}
}

// Aggregate returns the fewest entries that cover exactly the same addresses. It drops entries without addresses.
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
