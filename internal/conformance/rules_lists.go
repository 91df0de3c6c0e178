package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const lists = "/config/networklists"

// Types of a network list.
const (
	typeIP  = "IP"
	typeGEO = "GEO"
)

// listRules are the rules about reading network lists.
func listRules() []Rule {
	return []Rule{
		stated("2.6", "members of a network list have their types", func(p *probe) {
			p.eachList(func(l node) {
				kind := l.is("NetworkList").at("type").text()
				p.want(kind == typeIP || kind == typeGEO, "%s.type is %q", l.path, kind)
				for _, modified := range l.those("modified_timestamp") {
					p.want(!modified.time().Before(l.at("creation_timestamp").time()), "%s was modified before it was created", l.path)
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
			forms := map[string]bool{}
			for _, l := range p.read(lists + "?count=100&deprecated=true").at("items").items() {
				for _, at := range l.those("creation_timestamp", "modified_timestamp") {
					forms[digit.ReplaceAllString(at.text(), "0")] = true
				}
			}
			p.need(len(forms) > 0, "there are no network lists")
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
		stated("2.6", "entries of a list of type IP are addresses and CIDR ranges", func(p *probe) { entryValues(p, typeIP, isAddress) }),
		stated("2.6", "entries of a list of type GEO are two-letter country codes", func(p *probe) { entryValues(p, typeGEO, countryCode.MatchString) }),

		stated("4.6", "GET of lists, entries and an entry returns 200", func(p *probe) {
			list := p.listWithEntries(2)
			for _, path := range []string{lists, listPath(list) + "/entries", listPath(list) + "/entries/" + p.someEntry(list)} {
				p.get(path).wanted(http.StatusOK)
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
		stated("4.6", "count of networklists is 10 by default", func(p *probe) { defaultCount(p, lists, 10) }),
		stated("4.6", "page of networklists is 1 by default", func(p *probe) { defaultPage(p, lists) }),
		stated("4.6", "GET of lists and entries rejects invalid query parameters with 400", func(p *probe) {
			p.rejects(lists, "page=x", "count=x", "type=IPX", "deprecated=x")
			p.rejects(listPath(p.someList()), "includelist=x")
			p.rejects(listPath(p.someList())+"/entries", "page=x", "count=x")
		}),
		stated("4.6", "GET of a network list returns 200 and that list", func(p *probe) {
			id := p.someList()
			r := p.get(listPath(id))
			r.wanted(http.StatusOK)
			p.strict = true
			p.want(r.json().at("id").text() == id, "another list was read")
		}),
		stated("4.6", "a network list has its entries unless includelist is false", func(p *probe) {
			id := p.someList()
			p.strict = true
			for _, query := range []string{"", "?includelist=true"} {
				for _, e := range p.read(listPath(id) + query).at("list").items() {
					e.text()
				}
			}
		}),
		stated("4.6", "includelist=false leaves the list out", func(p *probe) {
			l := p.read(listPath(p.someList()) + "?includelist=false")
			p.want(!l.has("list"), "the member list is there")
			l.at("id")
		}),
		open("4.6", 38, "a network list that does not exist", func(p *probe) {
			p.saw("returned %d", p.get(listPath("00000000-0000-4000-8000-000000000000")).status)
		}),
	}
}

var digit = regexp.MustCompile(`\d`)

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

// someList returns the id of a list.
func (p *probe) someList() string { return p.listsOf("")[0] }

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
func entryValues(p *probe, kind string, valid func(string) bool) {
	found := false
	for _, id := range p.listsOf(kind) {
		for _, e := range p.read(listPath(id)).at("list").items() {
			found = true
			p.want(valid(e.text()), "%s is %q", e.path, e.value)
		}
	}
	p.need(found, "none of the lists read has entries")
}

// defaultCount compares the size of a page without count with the default of the document.
func defaultCount(p *probe, path string, count int) {
	page := p.read(path)
	total, items := page.at("total").integer(), len(page.at("items").items())
	p.need(total > int64(count), "there are only %d items, with which the default does not show", total)
	p.want(items == count, "the page has %d items, not %d", items, count)
}

// defaultPage compares a response without the parameter page with page 1.
func defaultPage(p *probe, path string) {
	page := p.read(path)
	p.want(page.at("page_index").integer() == 1, "page_index is %d", page.at("page_index").integer())
	first, same := p.read(path+"?page=1").at("items").items(), page.at("items").items()
	p.want(slices.EqualFunc(first, same, func(a, b node) bool { return a.at("id").text() == b.at("id").text() }),
		"the items are not those of page 1")
}

// pagingRules are the rules about the envelope, once for lists and once for entries.
func pagingRules() []Rule {
	return slices.Concat(
		envelopeRules("lists", 10, func(*probe) string { return lists }),
		envelopeRules("entries", 100, func(p *probe) string { return listPath(p.listWithEntries(2)) + "/entries" }),
	)
}

func envelopeRules(what string, count int, path func(p *probe) string) []Rule {
	// pages returns the first and the last page, of one item each.
	pages := func(p *probe) (first, last node, total int64) {
		at := path(p)
		first = p.read(at + "?page=1&count=1")
		total = first.at("total").integer()
		p.need(total > 1, "there are not two items")
		return first, p.read(fmt.Sprintf("%s?page=%d&count=1", at, total)), total
	}
	return []Rule{
		stated("2.6", "members of a page of "+what+" have their types", func(p *probe) {
			page := p.read(path(p))
			p.strict = true
			page.is("Page")
		}),
		stated("2.6", "uri of a page of "+what+" is its address with count and page", func(p *probe) {
			first, _, _ := pages(p)
			pageAddress(first.at("uri"), path(p), "1")
		}),
		stated("2.6", "total is the number of all "+what, func(p *probe) {
			at := path(p)
			total := p.read(at + "?count=1").at("total").integer()
			p.need(total <= 1000, "there are %d, too many to count", total)
			items := len(p.read(fmt.Sprintf("%s?count=%d", at, max(total, 1))).at("items").items())
			p.want(int64(items) == total, "total is %d, but %d came", total, items)
		}),
		stated("2.6", "count is the maximum number of "+what+" per page", func(p *probe) {
			at := path(p)
			items := p.read(at + "?count=2").at("items").items()
			p.want(len(items) <= 2, "the page has %d items", len(items))
			p.need(len(items) == 2, "there are not two items")
		}),
		stated("2.6", "page_count of "+what+" is the number of pages for the count used", func(p *probe) {
			first, _, total := pages(p)
			p.want(first.at("page_count").integer() == total, "with count 1, page_count is %d and total %d", first.at("page_count").integer(), total)
			three := p.read(path(p) + "?count=3").at("page_count").integer()
			p.want(three == (total+2)/3, "with count 3, page_count is %d and total %d", three, total)
		}),
		stated("2.6", "page_index of "+what+" is the current page, from 1 on", func(p *probe) {
			first, last, total := pages(p)
			p.want(first.at("page_index").integer() == 1, "page_index of the first page is %d", first.at("page_index").integer())
			p.want(last.at("page_index").integer() == total, "page_index of page %d is %d", total, last.at("page_index").integer())
		}),
		stated("2.6", "has_more of "+what+" is true before the last page and false on it", func(p *probe) {
			first, last, _ := pages(p)
			p.want(first.at("has_more").flag(), "has_more is false on the first of several pages")
			p.want(!last.at("has_more").flag(), "has_more is true on the last page")
		}),
		stated("2.6", "prev_uri of "+what+" is null on the first page and the previous page otherwise", func(p *probe) {
			first, last, total := pages(p)
			p.want(first.at("prev_uri").null(), "prev_uri is not null on the first page")
			p.want(!last.at("prev_uri").null(), "prev_uri is null on the last of several pages")
			pageAddress(last.at("prev_uri"), path(p), strconv.FormatInt(total-1, 10))
		}),
		stated("2.6", "next_uri of "+what+" is null on the last page and the next page otherwise", func(p *probe) {
			first, last, _ := pages(p)
			p.strict = true
			p.want(last.at("next_uri").null(), "next_uri is not null on the last page")
			p.want(!first.at("next_uri").null(), "next_uri is null on the first of several pages")
			pageAddress(first.at("next_uri"), path(p), "2")
		}),
		open("2.6", 29, "form of next_uri of "+what, func(p *probe) {
			first, _, _ := pages(p)
			p.saw("%s", p.pageForm(first.at("next_uri").text(), path(p)))
		}),
		open("2.6", 2, "a page of "+what+" behind the last", func(p *probe) {
			_, _, total := pages(p)
			r := p.get(fmt.Sprintf("%s?page=%d&count=1", path(p), total+1))
			if r.status != http.StatusOK {
				p.saw("returned %d", r.status)
			}
			p.saw("returned 200 and %d items", len(r.json().at("items").items()))
		}),
		open("4.6", 49, "a count of 1,000 of "+what, func(p *probe) {
			r := p.get(path(p) + "?count=1000")
			if r.status != http.StatusOK {
				p.saw("returned %d", r.status)
			}
			p.saw("returned 200 and %d of %d items", len(r.json().at("items").items()), r.json().at("total").integer())
		}),
		stated("4.6", "incrementing page of "+what+" moves on", func(p *probe) {
			page, _, _ := pages(p)
			first, second := page.at("items").items(), p.read(path(p)+"?page=2&count=1").at("items").items()
			p.need(len(first) == 1 && len(second) == 1, "pages of one item have %d and %d", len(first), len(second))
			p.want(first[0].at("id").text() != second[0].at("id").text(), "page 2 has the same item as page 1")
		}),
		stated("8", "paging of "+what+fmt.Sprintf(" begins with page 1 and count %d", count), func(p *probe) {
			page := p.read(path(p))
			total, pages := page.at("total").integer(), page.at("page_count").integer()
			p.want(pages == (total+int64(count)-1)/int64(count), "of %d items there are %d pages", total, pages)
		}),
	}
}

// pageAddress checks that an address is that of a page with one item. What comes before the query is open (point 29).
func pageAddress(n node, path, index string) {
	_, query, _ := strings.Cut(n.text(), "?")
	values, err := url.ParseQuery(query)
	if err != nil || values.Get("page") != index || values.Get("count") != "1" {
		n.p.differs("%s is %q, not page %s of one item of %s", n.path, n.value, index, path)
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

// listWithEntries returns the id of one of the first lists that has at least that many entries.
func (p *probe) listWithEntries(least int) string {
	if id := p.withEntries[least]; id != "" {
		return id
	}
	for _, id := range p.listsOf("") {
		if page := p.read(listPath(id) + "/entries?count=1"); page.at("total").integer() >= int64(least) {
			if p.withEntries == nil {
				p.withEntries = map[int]string{}
			}
			p.withEntries[least] = id
			return id
		}
	}
	p.skip("none of the lists read has %d entries", least)
	return ""
}
