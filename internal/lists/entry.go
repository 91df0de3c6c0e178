// Package lists parses the entries of network lists, computes and orders the changes that make a list equal to the
// desired entries, and limits how much may change at once. It must not depend on requests, tasks, or the SDK's types
// and errors.
//
// Its entry points are [Parse] and [Read] for an entry, [NewDesired] and [Desired.Compare] for a plan, [Stored] for a
// stored plan, [Changes.Order], [Fingerprint], and the limits [Removals] and [Additions].
package lists

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Types of lists. (Service document, section 2.6.)
const (
	IP  = "IP"
	GEO = "GEO"
)

// Entry is an entry that a list contains or should contain.
type Entry struct {
	ID   string // "" if the entry is not in a list
	Text string // as written, except that Parse converts a country code to upper case
	Meaning
}

// Meaning is the canonical form of an entry. Entries with equal meanings are the same entry (open point 27): 192.0.2.1
// and 192.0.2.1/32, 192.0.2.7/24 and 192.0.2.0/24, ::ffff:192.0.2.1 and 192.0.2.1, de and DE.
type Meaning struct {
	// Prefix is set if the entry is an address or a range. It is masked, and an IPv4-mapped prefix is an IPv4 prefix. An
	// address is a prefix of full length.
	Prefix netip.Prefix
	// Name is set otherwise: the country code in upper case, or the text itself if it is none of these.
	Name string
}

// Type returns the type of the lists that a readable entry belongs to.
func (m Meaning) Type() string {
	if m.Prefix.IsValid() {
		return IP
	}
	return GEO
}

// Parse parses an address, a range or a country code.
func Parse(text string) (Entry, error) {
	if len(text) == len("DE") {
		if code := strings.ToUpper(text); isCountry(code) {
			return Entry{Text: code, Meaning: Meaning{Name: code}}, nil
		}
	}
	if strings.Contains(text, "/") { // before ParseAddr, which allocates an error for each range
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

// ParseFor parses an entry for a list of this type, or of any type if listType is "".
func ParseFor(listType, text string) (Entry, error) {
	e, err := Parse(text)
	if err == nil && e.Type() != cmp.Or(listType, e.Type()) {
		err = fmt.Errorf("%q does not belong to a list of type %s", text, listType)
	}
	return e, err
}

// Mixed returns the error for two entries of both types. Either may be wrong: ID is Indonesia or the header of a table.
func Mixed(a, b Entry) error {
	return fmt.Errorf("%q belongs to a list of type %s, and %q to one of type %s", a.Text, a.Type(), b.Text, b.Type())
}

// Read returns the meaning of any text that a list may contain. For a text that [Parse] does not accept, such as XK for
// Kosovo or an unusual spelling of an address, that is the text itself, with a two-letter code in upper case.
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

// mappedIPv4 contains the IPv4-mapped IPv6 addresses.
var mappedIPv4 = netip.MustParsePrefix("::ffff:0:0/96")

// unmap converts an IPv4-mapped range to IPv4. It returns any other prefix unchanged.
func unmap(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= mappedIPv4.Bits() {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedIPv4.Bits())
	}
	return p
}
