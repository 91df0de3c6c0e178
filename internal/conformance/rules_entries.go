package conformance

import (
	"net/netip"
	"net/url"
	"regexp"
)

// entryRules are the rules about reading the entries of network lists.
func entryRules() []Rule {
	entries := func(p *probe) string { return listPath(p.listWithEntries(2)) + "/entries" }
	return []Rule{
		stated("2.6", "members of an entry have their types", func(p *probe) {
			at := entries(p)
			items := p.read(at).at("items").items()
			p.strict = true
			for _, e := range items {
				e.is("NetworkListEntry").at("uri").address(at + "/" + e.at("id").text())
			}
		}),
		stated("2.6", "an entry read by itself has uri, id, type and network_list_uri", func(p *probe) {
			list := p.listWithEntries(2)
			entry := p.someEntry(list)
			e := p.read(listPath(list) + "/entries/" + entry)
			p.strict = true
			e.is("EntryDetails").at("uri").address(listPath(list) + "/entries/" + entry)
			e.at("network_list_uri").address(listPath(list))
			p.want(e.at("id").text() == entry, "another entry was read")
			kind := e.at("type").text()
			p.want(kind == typeIP || kind == typeGEO, "type is %q", kind)
		}),
		stated("4.6", "count of entries is 100 by default", func(p *probe) {
			defaultCount(p, listPath(p.listWithEntries(101))+"/entries", 100)
		}),
		stated("4.6", "page of entries is 1 by default", func(p *probe) { defaultPage(p, entries(p)) }),
		stated("4.6", "the entries are those of the member list of the list", func(p *probe) {
			list := p.listWithEntries(2)
			read := map[string]bool{}
			for _, e := range p.read(listPath(list)).at("list").items() {
				read[e.text()] = true
			}
			for _, e := range p.read(listPath(list) + "/entries").at("items").items() {
				p.want(read[e.at("entry").text()], "%s is not in list", e.path)
			}
		}),
		open("4.6", 38, "an entry that does not exist", func(p *probe) {
			r := p.get(listPath(p.someList()) + "/entries/00000000-0000-4000-8000-000000000000")
			p.saw("returned %d", r.status)
		}),
	}
}

func (p *probe) someEntry(list string) string {
	items := p.read(listPath(list) + "/entries?count=1").at("items").items()
	p.need(len(items) > 0, "the list has no entries")
	return url.PathEscape(items[0].at("id").text())
}

func isAddress(text string) bool {
	_, notAddr := netip.ParseAddr(text)
	_, notPrefix := netip.ParsePrefix(text)
	return notAddr == nil || notPrefix == nil
}

// countryCode is only the form, because the codes that ISO 3166-1 assigns change.
var countryCode = regexp.MustCompile(`^[A-Za-z]{2}$`)
