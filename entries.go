package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/text/language"
)

// entry is one entry of a network list: the text that is sent, and what it means. Two entries with the same meaning are
// the same (open point 27): 192.0.2.1 and 192.0.2.1/32, 192.0.2.7/24 and 192.0.2.0/24, ::ffff:192.0.2.1 and 192.0.2.1,
// de and DE.
type entry struct {
	text string
	meaning
}

// meaning is the canonical form of an entry. It can be compared.
type meaning struct {
	prefix netip.Prefix // of an IP list: masked, not mapped; an address is the prefix of its full length
	name   string       // of a GEO list: the country in upper case; or what the service holds that is neither
}

// listType is the type of list that an entry belongs to.
func (m meaning) listType() ListType {
	if m.prefix.IsValid() {
		return ListTypeIP
	}
	return ListTypeGEO
}

// parseEntry reads an address, a range or a country code.
func parseEntry(text string) (entry, error) {
	if code := strings.ToUpper(text); len(text) == 2 && isCountry(code) {
		return entry{text: code, meaning: meaning{name: code}}, nil
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" {
			return entry{}, fmt.Errorf("%q has a zone, which means nothing outside of one machine", text)
		}
		addr = addr.Unmap()
		return entry{text: text, meaning: meaning{prefix: netip.PrefixFrom(addr, addr.BitLen())}}, nil
	}
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return entry{text: text, meaning: meaning{prefix: unmapPrefix(prefix).Masked()}}, nil
	}
	return entry{}, fmt.Errorf("%q is neither an IP address, a CIDR range nor an ISO 3166-1 country code", text)
}

// unmapPrefix makes an IPv4 range of one that is written as IPv4 in IPv6.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	const mapped = 96
	if p.Addr().Is4In6() && p.Bits() >= mapped {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
	}
	return p
}

// withdrawn are codes of countries that are no more (ISO 3166-3), which the library still knows as countries.
const withdrawn = "AN CS NT SU YU"

// isCountry: an assigned code of ISO 3166-1 alpha-2. The library also knows reserved codes, which have no number of
// UN M.49, and private ones.
func isCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.String() == code && region.Canonicalize() == region &&
		region.M49() != 0 && !region.IsPrivateUse() && !strings.Contains(withdrawn, code)
}

// parseEntries reads entries for a list of one type; of any when want is "", and then the first decides. Everything that
// is wrong is in one error, each with its place, up to maxProblems.
func parseEntries(field string, want ListType, texts []string) ([]entry, error) {
	var bad problems
	parsed := make([]entry, 0, len(texts))
	for i, text := range texts {
		if bad.full(len(texts) - i) {
			break
		}
		e, err := parseEntry(text)
		if err == nil {
			want = cmp.Or(want, e.listType())
			if e.listType() != want {
				err = fmt.Errorf("%q does not belong to a list of type %s", text, want)
			}
		}
		if err != nil {
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%v", err)
			continue
		}
		parsed = append(parsed, e)
	}
	return parsed, bad.err()
}

// heldEntry reads an entry that a list holds, whatever it is.
func heldEntry(text string) entry {
	e, err := parseEntry(text)
	if err != nil {
		return strangeEntry(text)
	}
	return e
}

// strangeEntry is what a service may hold and parseEntry does not read, such as XK for the Kosovo, EU, or an address in a
// spelling of its own. It means itself; the letter case of a code does not count.
func strangeEntry(text string) entry {
	if len(text) == len("XK") {
		text = strings.ToUpper(text)
	}
	return entry{text: text, meaning: meaning{name: text}}
}

// desiredEntries are what a list shall hold.
type desiredEntries struct {
	texts   []string // as they came
	entries []entry  // those that can be read, all of one type; like the others without duplicates
	strange []entry  // the others: only a list that holds them already may keep them
}

// readDesired refuses what no list can hold, before the list is read. What means the same is kept once, the first.
func readDesired(ctx context.Context, texts []string, merge bool) (*desiredEntries, error) {
	d := &desiredEntries{texts: texts, entries: make([]entry, 0, min(len(texts), maxListEntries))}
	seen := make(map[meaning]bool, cap(d.entries))
	for i, text := range texts {
		if i%1024 == 1023 && ctx.Err() != nil { // millions take seconds
			return nil, &changeError{fmt.Errorf("webdelivery: plan: %w", ctx.Err()), NotApplied}
		}
		e, err := parseEntry(text)
		if err != nil {
			e = strangeEntry(text)
		}
		if seen[e.meaning] {
			continue
		}
		seen[e.meaning] = true
		switch {
		case err != nil:
			d.strange = append(d.strange, e)
		default:
			d.entries = append(d.entries, e)
		}
		switch {
		case len(d.entries) > 0 && d.entries[len(d.entries)-1].listType() != d.entries[0].listType():
			return nil, d.problems(d.entries[0].listType(), func(meaning) bool { return true })
		case len(d.strange) > maxListEntries: // a list can hold them only if it holds them already
			return nil, d.problems(d.likelyType(), func(meaning) bool { return false })
		}
	}
	if merge && len(d.entries) > 0 && d.entries[0].listType() == ListTypeIP {
		d.entries = aggregate(d.entries)
	}
	if n := len(d.entries) + len(d.strange); n > maxListEntries {
		return nil, invalid("desired", "%d entries are more than the %d that a list can hold", n, maxListEntries)
	}
	return d, nil
}

// likelyType is the type of a list that may hold the entries.
func (d *desiredEntries) likelyType() ListType {
	if len(d.entries) == 0 {
		return ListTypeIP
	}
	return d.entries[0].listType()
}

// check refuses entries that do not belong to a list of this type, and new ones that cannot be read.
func (d *desiredEntries) check(listType ListType, current []held) error {
	fits := len(d.entries) == 0 || d.entries[0].listType() == listType
	if fits && len(d.strange) == 0 {
		return nil
	}
	has := meanings(current)
	return d.problems(listType, func(m meaning) bool { return has[m] })
}

// problems are what is wrong with the desired entries, each with its place, up to maxProblems.
func (d *desiredEntries) problems(listType ListType, has func(meaning) bool) error {
	var bad problems
	for i, text := range d.texts {
		if bad.full(len(d.texts) - i) {
			break
		}
		e, err := parseEntry(text)
		switch {
		case err != nil && has(strangeEntry(text).meaning):
			continue
		case err == nil && e.listType() != listType:
			err = fmt.Errorf("%q does not belong to a list of type %s", text, listType)
		}
		if err != nil {
			bad.add(fmt.Sprintf("desired[%d]", i), "%v", err)
		}
	}
	return bad.err()
}

// withoutDuplicates keeps the first of those that mean the same.
func withoutDuplicates(entries []entry) []entry {
	seen := make(map[meaning]bool, len(entries))
	kept := make([]entry, 0, len(entries))
	for _, e := range entries {
		if !seen[e.meaning] {
			seen[e.meaning] = true
			kept = append(kept, e)
		}
	}
	return kept
}

func textsOf(entries []entry) []string {
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.text
	}
	return texts
}
