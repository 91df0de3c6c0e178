// Package lists knows what the entries of a network list mean, which changes make a list equal to desired entries, in
// which order, and how much may change at once. It knows texts, ids, addresses and numbers. It must not know requests,
// tasks, or the SDK's types and errors.
//
// Entry points: [Parse] and [Read] for one entry, [NewDesired] and [Desired.Compare] for a plan, [Stored] for a plan that
// was stored, [Changes.Order], [Fingerprint], and the guards [Removals] and [Additions].
package lists

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// The types of lists. (Service document, section 2.6.)
const (
	IP  = "IP"
	GEO = "GEO"
)

// Entry is an entry of a list, or one that a list is to hold.
type Entry struct {
	ID   string // "" unless a list holds the entry
	Text string // as written, except that Parse writes a country in upper case
	Meaning
}

// Meaning is the canonical form of an entry. Entries with equal meanings are the same entry (open point 27): 192.0.2.1
// and 192.0.2.1/32, 192.0.2.7/24 and 192.0.2.0/24, ::ffff:192.0.2.1 and 192.0.2.1, de and DE.
type Meaning struct {
	// Prefix is set if the entry is an address or a range. It is masked, and IPv4 in IPv6 is written as IPv4. An
	// address is a prefix of full length.
	Prefix netip.Prefix
	// Name is set otherwise: the country in upper case, or the text itself if it is neither.
	Name string
}

// Type returns the type of the lists that a readable entry belongs to.
func (m Meaning) Type() string {
	if m.Prefix.IsValid() {
		return IP
	}
	return GEO
}

// Parse reads an address, a range or a country code.
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

// ParseFor reads an entry for a list of this type, or of any type if listType is "".
func ParseFor(listType, text string) (Entry, error) {
	e, err := Parse(text)
	if err == nil && e.Type() != cmp.Or(listType, e.Type()) {
		err = fmt.Errorf("%q does not belong to a list of type %s", text, listType)
	}
	return e, err
}

// Read returns the meaning of any text that a service may hold. If [Parse] does not accept it, such as XK for Kosovo or
// an unusual spelling of an address, its meaning is the text itself. The letter case of a two-letter code is ignored.
func Read(text string) Meaning {
	e, err := Parse(text)
	if err != nil {
		e = opaque(text)
	}
	return e.Meaning
}

func opaque(text string) Entry {
	if len(text) == len("XK") {
		text = strings.ToUpper(text)
	}
	return Entry{Text: text, Meaning: Meaning{Name: text}}
}

// Texts returns the text of each entry.
func Texts(entries []Entry) []string {
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.Text
	}
	return texts
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

// isCountry reports whether a code in upper case is assigned in ISO 3166-1 alpha-2. The library also accepts private
// codes, reserved ones, which have no UN M.49 number, and some of former countries (ISO 3166-3).
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.String() == code && region.Canonicalize() == region &&
		region.M49() != 0 && !region.IsPrivateUse() && !slices.Contains([]string{"AN", "CS", "NT", "SU", "YU"}, code)
}
