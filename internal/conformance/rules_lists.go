package conformance

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const lists = "/config/networklists"

const typeIP, typeGEO = "IP", "GEO" // of a network list

// listRules are the rules about reading network lists.
func listRules() []Rule {
	return []Rule{
		stated("2.6", "members of a network list have their types", func(p *probe) {
			p.eachList(func(l node) {
				if l.is("NetworkList").has("modified_timestamp") {
					since := l.at("modified_timestamp").time().Sub(l.at("creation_timestamp").time())
					p.want(since >= 0, "%s was modified before it was created", l.path)
				}
			})
		}),
		stated("2.6", "uri, entries_uri and entries_batch_deletion_uri of a network list have their forms", func(p *probe) {
			p.eachList(func(l node) {
				path := listPath(l.at("id").text())
				l.at("uri").address(path)
				l.at("entries_uri").address(path + "/entries")
				l.at("entries_batch_deletion_uri").address(path + "/entries/deletions")
			})
		}),
		open("2.6", 42, "spelling of the timestamps of network lists", func(p *probe) {
			forms, digit := map[string]bool{}, regexp.MustCompile(`\d`)
			p.eachList(func(l node) {
				for _, name := range []string{"creation_timestamp", "modified_timestamp"} {
					if l.has(name) {
						forms[digit.ReplaceAllString(l.at(name).text(), "0")] = true
					}
				}
			})
			p.saw("%s", list(forms))
		}),
		open("2.6", 28, "letter case of country codes", func(p *probe) {
			upper, lower := 0, 0
			for _, id := range p.listsOf(typeGEO) {
				for _, e := range p.read(listPath(id)).at("list").items() {
					if e.text() == strings.ToUpper(e.text()) {
						upper++
					} else {
						lower++
					}
				}
			}
			p.need(upper+lower > 0, "none of the lists read has entries")
			p.saw("%d in upper case, %d not", upper, lower)
		}),
		stated("2.6", "entries of a list of type IP are addresses and CIDR ranges", func(p *probe) {
			p.entryValues(typeIP, func(text string) bool {
				_, notAddr := netip.ParseAddr(text)
				_, notPrefix := netip.ParsePrefix(text)
				return notAddr == nil || notPrefix == nil
			})
		}),
		stated("2.6", "entries of a list of type GEO are two-letter country codes", func(p *probe) {
			p.entryValues(typeGEO, regexp.MustCompile(`^[A-Za-z]{2}$`).MatchString) // the codes that ISO 3166-1 assigns change
		}),
		stated("2.6", "members of an entry have their types", func(p *probe) {
			at := entriesPath(p)
			items := p.read(at).at("items").items()
			p.strict = true
			for _, e := range items {
				e.is("NetworkListEntry").at("uri").address(at + "/" + e.at("id").text())
			}
		}),
		stated("2.6", "an entry read by itself has uri, id, type and network_list_uri", func(p *probe) {
			list, entry := p.someEntry()
			e := p.read(lists + "/" + list + "/entries/" + entry)
			p.strict = true
			e.is("EntryDetails").at("uri").address(lists + "/" + list + "/entries/" + entry)
			e.at("network_list_uri").address(lists + "/" + list)
			p.want(e.at("id").text() == entry, "another entry was read")
		}),

		stated("4.6", "GET of lists, a list, entries and an entry returns 200", func(p *probe) {
			list, entry := p.someEntry()
			for _, path := range []string{"", "/" + list, "/" + list + "/entries", "/" + list + "/entries/" + entry} {
				p.get(lists + path).wanted(http.StatusOK)
			}
		}),
		stated("4.6", "the entries are those of the member list of the list", func(p *probe) {
			at := entriesPath(p)
			read := map[string]bool{}
			for _, e := range p.read(strings.TrimSuffix(at, "/entries")).at("list").items() {
				read[e.text()] = true
			}
			for _, e := range p.read(at).at("items").items() {
				p.want(read[e.at("entry").text()], "%s is not in list", e.path)
			}
		}),
		stated("4.6", "items of networklists have no list", func(p *probe) {
			p.eachList(func(l node) { p.want(!l.has("list"), "%s has the member list", l.path) })
		}),
		stated("4.6", "type of networklists leaves lists of that type", func(p *probe) {
			for _, kind := range []string{typeIP, typeGEO} {
				for _, l := range p.read(lists + "?count=100&type=" + kind).at("items").items() {
					p.want(l.at("type").text() == kind, "%s of type %s was returned for %s", l.path, l.value, kind)
				}
			}
		}),
		stated("4.6", "without type networklists has both types", func(p *probe) {
			total := map[string]int64{}
			for _, query := range []string{"", "&type=IP", "&type=GEO"} {
				total[query] = p.read(lists + "?count=1" + query).at("total").integer()
			}
			p.want(total[""] == total["&type=IP"]+total["&type=GEO"], "of %d lists %d are of type IP and %d of type GEO",
				total[""], total["&type=IP"], total["&type=GEO"])
		}),
		stated("4.6", "GET of lists and entries rejects invalid query parameters with 400", func(p *probe) {
			p.rejects(lists, "page=x", "count=x", "type=IPX", "deprecated=x")
			list := listPath(p.listsOf("")[0])
			p.rejects(list, "includelist=x")
			p.rejects(list+"/entries", "page=x", "count=x")
		}),
		stated("4.6", "GET of a list returns that list, with its entries unless includelist is false", func(p *probe) {
			id := p.listsOf("")[0]
			p.strict = true
			for _, query := range []string{"", "?includelist=true", "?includelist=false"} {
				l := p.read(listPath(id) + query)
				p.want(l.is("NetworkList").at("id").text() == id, "another list was read")
				p.want(l.has("list") != strings.HasSuffix(query, "false"), "with %q it has the member list: %t", query, l.has("list"))
			}
		}),
		returned("4.6", 38, "a network list that does not exist", func(p *probe) response { return p.get(listPath(absentUUID)) }),
		returned("4.6", 38, "an entry that does not exist", func(p *probe) response {
			return p.get(listPath(p.listsOf("")[0]) + "/entries/" + absentUUID)
		}),

		stated("9", "deprecated lists are hidden unless deprecated=true is passed", func(p *probe) {
			for _, query := range []string{"", "&deprecated=false"} {
				for _, l := range p.read(lists + "?count=100" + query).at("items").items() {
					p.want(!l.at("deprecated").flag(), "%s is deprecated and not hidden", l.path)
				}
			}
			shown := p.read(lists + "?count=100&deprecated=true").at("items").items()
			p.need(slices.ContainsFunc(shown, func(l node) bool { return l.at("deprecated").flag() }), "no list is deprecated")
			some, all := p.read(lists+"?count=1").at("total").integer(), p.read(lists+"?count=1&deprecated=true").at("total").integer()
			p.want(all >= some, "there are %d lists with deprecated ones and %d without", all, some)
		}),
	}
}

const absentUUID = "00000000-0000-4000-8000-000000000000"

func listPath(id string) string { return lists + "/" + url.PathEscape(id) }

// eachList visits the lists of the first page, including deprecated ones.
func (p *probe) eachList(visit func(l node)) {
	items := p.read(lists + "?count=100&deprecated=true").at("items").items()
	p.need(len(items) > 0, "there are no network lists")
	p.strict = true
	for _, l := range items {
		visit(l)
	}
}

// listsOf returns the ids of the first lists of a type, at most ten.
func (p *probe) listsOf(kind string) []string {
	query := "?count=10"
	if kind != "" {
		query += "&type=" + kind
	}
	var ids []string
	for _, l := range p.read(lists + query).at("items").items() {
		ids = append(ids, l.at("id").text())
	}
	p.need(ids != nil, "there are no network lists of that type")
	return ids
}

// entryValues checks the entries of the first lists of a type.
func (p *probe) entryValues(kind string, valid func(string) bool) {
	found := false
	for _, id := range p.listsOf(kind) {
		for _, e := range p.read(listPath(id)).at("list").items() {
			found = true
			p.want(valid(e.text()), "%s is %q", e.path, e.value)
		}
	}
	p.need(found, "none of the lists read has entries")
}

// pagingRules are the rules about the pages of a collection.
func pagingRules(what string, count int64, path func(p *probe) string) []Rule {
	read := func(p *probe, page, count int64) node {
		return p.read(fmt.Sprintf("%s?page=%d&count=%d", path(p), page, count))
	}
	// pages returns the first and the last page, of one item each.
	pages := func(p *probe) (first, last node, total int64) {
		first = read(p, 1, 1)
		total = first.at("total").integer()
		p.need(total > 1, "there are not two items")
		return first, read(p, total, 1), total
	}
	size := func(r response) string {
		if r.status != http.StatusOK {
			return fmt.Sprintf("returned %d", r.status)
		}
		return fmt.Sprintf("returned 200 and %d of %d items", len(r.json().at("items").items()), r.json().at("total").integer())
	}
	return []Rule{
		stated("2.6", "members of a page of "+what+" have their types", func(p *probe) {
			page := p.read(path(p))
			p.strict = true
			page.is("Page")
		}),
		stated("2.6", "total is the number of all "+what, func(p *probe) {
			total := read(p, 1, 1).at("total").integer()
			p.need(total <= 1000, "there are %d, too many to count", total)
			items := len(read(p, 1, max(total, 1)).at("items").items())
			p.want(int64(items) == total, "total is %d, but %d came", total, items)
		}),
		stated("2.6", "page_index, page_count and has_more of "+what+" tell which page of how many it is", func(p *probe) {
			first, last, total := pages(p)
			p.want(first.at("page_index").integer() == 1 && last.at("page_index").integer() == total,
				"page_index of the pages 1 and %d is %v and %v", total, first.at("page_index").value, last.at("page_index").value)
			one, three := first.at("page_count").integer(), read(p, 1, 3).at("page_count").integer()
			p.want(one == total && three == (total+2)/3, "of %d items page_count is %d with count 1, %d with count 3", total, one, three)
			p.want(first.at("has_more").flag(), "has_more is false on the first of several pages")
			p.want(!last.at("has_more").flag(), "has_more is true on the last page")
		}),
		stated("2.6", "uri, prev_uri and next_uri of a page of "+what+" are addresses with page and count, or null", func(p *probe) {
			first, last, total := pages(p)
			p.strict = true
			first.at("uri").page(1)
			p.want(first.at("prev_uri").null(), "prev_uri is not null on the first page")
			first.at("next_uri").page(2)
			last.at("prev_uri").page(total - 1)
			p.want(last.at("next_uri").null(), "next_uri is not null on the last page")
		}),
		open("2.6", 29, "form of next_uri of "+what, func(p *probe) {
			first, _, _ := pages(p)
			p.saw("%s", p.pageForm(first.at("next_uri").text(), path(p)))
		}),
		open("2.6", 2, "a page of "+what+" behind the last", func(p *probe) {
			_, _, total := pages(p)
			p.saw("%s", size(p.get(fmt.Sprintf("%s?page=%d&count=1", path(p), total+1))))
		}),
		open("4.6", 49, "a count of 1,000 of "+what, func(p *probe) { p.saw("%s", size(p.get(path(p)+"?count=1000"))) }),
		stated("4.6", "count and page cut the "+what+" into pages", func(p *probe) {
			two := read(p, 1, 2).at("items").items()
			p.want(len(two) <= 2, "a page of two has %d items", len(two))
			page, _, _ := pages(p)
			first, second := page.at("items").items(), read(p, 2, 1).at("items").items()
			p.need(len(first) == 1 && len(second) == 1, "pages of one item have %d and %d", len(first), len(second))
			p.want(first[0].at("id").text() != second[0].at("id").text(), "page 2 has the same item as page 1")
		}),
		stated("8", fmt.Sprintf("page of %s is 1 and count %d by default", what, count), func(p *probe) {
			page := p.read(path(p))
			items, total, pages := page.at("items").items(), page.at("total").integer(), page.at("page_count").integer()
			p.want(page.at("page_index").integer() == 1, "page_index is %d", page.at("page_index").integer())
			same := func(a, b node) bool { return a.at("id").text() == b.at("id").text() }
			p.want(slices.EqualFunc(items, p.read(path(p)+"?page=1").at("items").items(), same), "the items are not those of page 1")
			p.want(int64(len(items)) == min(total, count), "the page has %d of %d items", len(items), total)
			p.want(pages == (total+count-1)/count, "of %d items there are %d pages", total, pages)
		}),
	}
}

// page checks that a text is the address of that page, of one item. What comes before the query is open (point 29).
func (n node) page(index int64) {
	_, query, _ := strings.Cut(n.text(), "?")
	values, err := url.ParseQuery(query)
	if err != nil || values.Get("page") != strconv.FormatInt(index, 10) || values.Get("count") != "1" {
		n.p.differs("%s is %q, not page %d of one item", n.path, n.value, index)
	}
}

// pageForm returns the form of the address of a page of the collection at path.
func (p *probe) pageForm(address, path string) string {
	got, form := p.relative(address)
	if got, _, _ = strings.Cut(got, "?"); got == path {
		return form
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "not an address"
	case u.Host != "" && u.Host != p.base.Host:
		return "with another host"
	case u.Host != "" && u.Scheme == "":
		return "without a scheme"
	case u.Host != "" && u.Scheme != p.base.Scheme:
		return "with another scheme"
	case u.Path == "":
		return "a query alone"
	case !strings.HasPrefix(u.Path, "/"):
		return "relative to the page"
	default:
		return "with another path"
	}
}

// entriesPath is the path of the entries of one of the first lists: one with more than a page of them, or with most.
func entriesPath(p *probe) string {
	if p.withEntries == "" {
		found, most := "", int64(1)
		for _, id := range p.listsOf("") {
			if total := p.read(listPath(id) + "/entries?count=1").at("total").integer(); total > most {
				found, most = id, total
			}
			if most > 100 {
				break
			}
		}
		p.need(found != "", "none of the lists read has two entries")
		p.withEntries = found
	}
	return listPath(p.withEntries) + "/entries"
}

// someEntry returns the ids of that list and of one of its entries, for a path.
func (p *probe) someEntry() (list, entry string) {
	items := p.read(entriesPath(p) + "?count=1").at("items").items()
	p.need(len(items) > 0, "the list has no entries")
	return url.PathEscape(p.withEntries), url.PathEscape(items[0].at("id").text())
}
