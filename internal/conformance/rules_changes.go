package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// changeRules are the rules about changing network lists. All but the last use the WriteList, which is empty before and
// after each of them.
func changeRules() []Rule {
	return []Rule{
		stated("2.6", "modified_timestamp is there once a list was modified", func(p *probe) {
			p.strict = true
			l := p.read(listPath(p.WriteList))
			p.want(!l.at("modified_timestamp").time().Before(l.at("creation_timestamp").time()), "it is before creation_timestamp")
		}).on("2001:db8::1"),
		stated("2.6", "a list of type IP holds nothing but addresses and CIDR ranges", func(p *probe) {
			p.emptied(func() {
				for _, value := range []string{"conformance", "192.0.2.1/33", "US"} {
					p.post(value)
				}
				p.want(len(p.held()) == 0, "it holds %q", p.held())
			})
		}),
		stated("2.6", "entries_batch_deletion_uri removes all entries and keeps the list", func(p *probe) {
			p.need(p.clear(), "none of POST, DELETE and PUT removed the entries")
			p.get(listPath(p.WriteList)).wanted(http.StatusOK)
		}).on("192.0.2.1", "192.0.2.2"),
		open("2.6", 24, "method on entries_batch_deletion_uri", func(p *probe) {
			p.need(p.clear(), "none of POST, DELETE and PUT removed the entries")
			p.saw("%s", p.clearMethod)
		}).on("192.0.2.1"),

		stated("4.6", "POST of entries adds any addresses and CIDR ranges", func(p *probe) {
			p.emptied(func() {
				r := p.post("192.0.2.1", "2001:db8::2", "198.51.100.0/24", "2001:db8:1::/48")
				added := p.until(func() bool { return p.total() == 4 })
				p.want(added, "%s returned %d, and of four entries the list has %q", r.request, r.status, p.held())
			})
		}),
		open("4.6", 19, "key of an entry in the body of POST entries", func(p *probe) { p.saw("%s", p.entryKey) }).on("192.0.2.1"),
		open("4.6", 21, "body of POST entries", func(p *probe) {
			p.emptied(func() { p.post("192.0.2.1").told() })
		}),
		open("4.6", 26, "an entry that is already there", func(p *probe) {
			p.saw("returned %d, then the list has %d entries", p.post("192.0.2.1").status, len(p.held()))
		}).on("192.0.2.1"),
		open("4.6", 20, "POST to the address of an entry", func(p *probe) {
			p.need(isUUID.MatchString(p.first), "the id of an entry is not a UUID")
			r := p.send(http.MethodPost, listPath(p.WriteList)+"/entries/"+p.first, []object{{p.entryKey: "192.0.2.2"}}, p.User.basic)
			p.saw("returned %d, then the list has %d entries; POST to the entries adds them", r.status, p.total())
		}).on("192.0.2.1"),
		open("4.6", 27, "one address in several spellings", func(p *probe) {
			p.saw("returned %d, then the list has %q", p.post("192.0.2.1", "192.0.2.1/32", "::ffff:192.0.2.1").status, p.held())
		}).on("192.0.2.1"),
		returned("4.6", 38, "DELETE of an entry that does not exist", func(p *probe) response {
			p.deleteEntry(p.first)
			p.need(p.until(func() bool { return p.total() == 0 }), "the entry was not deleted")
			return p.send(http.MethodDelete, p.entryPath(p.entryDelete, p.first), nil, p.User.basic)
		}).on("192.0.2.1"),
		stated("4.6", "DELETE of an entry removes it alone, and returns a task", func(p *probe) {
			r := p.deleteEntry(p.first)
			gone := p.until(func() bool { return !slices.Contains(p.held(), "192.0.2.1") })
			p.want(gone && slices.Equal(p.held(), []string{"192.0.2.2"}), "after the removal of 192.0.2.1 it holds %q", p.held())
			p.strict = true
			r.json().at("id").text()
		}).on("192.0.2.1", "192.0.2.2"),
		open("4.6", 22, "path of DELETE of an entry", func(p *probe) {
			p.deleteEntry(p.first)
			p.saw("%s", p.entryDelete)
		}).on("192.0.2.1"),
		stated("8", "5,000 entries are added by one call", func(p *probe) {
			p.many(5000, func(r response) {
				p.want(r.status < 300, "they returned %d", r.status)
				p.want(p.until(func() bool { return p.total() == 5000 }), "the list has %d entries", p.total())
			})
		}),
		stated("8", "more than 5,000 entries are not added by one call", func(p *probe) {
			p.many(5001, func(r response) { r.refused("with 5,001 entries") })
		}),
		open("8", 37, "removal of more than 5,000 entries by one call", func(p *probe) {
			p.many(5000, func(r response) {
				p.need(r.status < 300 && p.until(func() bool { return p.total() == 5000 }), "5,000 entries were not added")
				p.post("192.0.2.1")
				p.need(p.until(func() bool { return p.total() == 5001 }), "another entry was not added")
				r = p.send(p.clearMethod, listPath(p.WriteList)+"/entries/deletions", nil, p.User.basic)
				p.until(func() bool { return r.status >= 300 || p.total() == 0 })
				p.saw("a call for 5,001 entries returned %d, then there were %d", r.status, p.total())
			})
		}),
		stated("8", "a list has at most 50,000 entries", func(p *probe) {
			p.need(p.FullList != "", "it needs --full-list")
			total := p.read(listPath(p.FullList) + "/entries?count=1").at("total").integer()
			p.need(total == 50_000, "the list that should be full has %d entries", total)
			p.sendEntries(p.FullList, "2001:db8:ffff:ffff::1").refused("to a full list")
		}),

		// This rule comes last, because there is only one such list.
		stated("4.6", "DELETE of a list removes it", func(p *probe) {
			p.deleteList()
			gone := p.until(func() bool { return p.get(listPath(p.DeleteList)).status != http.StatusOK })
			p.want(gone, "the list can still be read")
		}),
		open("4.6", 23, "body of DELETE of a list", func(p *probe) { p.deleteList().told() }),
	}
}

// emptied runs a check on the WriteList. The list must be empty before, and emptied empties it afterwards.
func (p *probe) emptied(test func()) {
	p.need(p.WriteList != "", "it needs --write-list")
	p.need(p.total() == 0, "the list that may be written is not empty")
	defer func() { // even if the check ends within
		p.strict = false
		for _, e := range p.entries() {
			p.deleteEntry(e.at("id").text())
		}
	}()
	test()
}

// on makes the check of a rule use the WriteList with these entries. The id of the first one is p.first.
func (r Rule) on(values ...string) Rule {
	check := r.check
	r.check = func(p *probe) {
		p.emptied(func() {
			r := p.post(values...)
			p.need(r.status < 300, "%s returned %d", r.request, r.status)
			p.need(p.until(func() bool { return p.total() > 0 }), "no entry was added")
			for _, e := range p.entries() {
				if e.at("entry").text() == values[0] {
					p.first = e.at("id").text()
				}
			}
			check(p)
		})
	}
	return r
}

// many posts that many entries, provided that one request can remove them all.
func (p *probe) many(count int, test func(response)) {
	clearing := Rule{check: func(p *probe) { p.need(p.clear(), "that many entries could not be removed again") }}
	clearing.on("192.0.2.1").check(p)
	p.emptied(func() {
		defer p.clear()
		values := make([]string, count)
		for i := range values {
			values[i] = fmt.Sprintf("2001:db8::%x", i+1)
		}
		test(p.post(values...))
	})
}

func (p *probe) total() int64 {
	return p.read(listPath(p.WriteList) + "/entries?count=1").at("total").integer()
}

func (p *probe) entries() []node {
	return p.read(listPath(p.WriteList) + "/entries").at("items").items()
}

// held returns the entries of the WriteList, sorted.
func (p *probe) held() []string {
	var values []string
	for _, e := range p.entries() {
		values = append(values, e.at("entry").text())
	}
	slices.Sort(values)
	return values
}

func (p *probe) post(values ...string) response { return p.sendEntries(p.WriteList, values...) }

// learn tries forms in turn, until the service takes one. Later calls use that form alone.
func learn(known *string, forms []string, take func(form string) bool) bool {
	if *known != "" {
		forms = []string{*known}
	}
	i := slices.IndexFunc(forms, take)
	if i >= 0 {
		*known = forms[i]
	}
	return i >= 0
}

// sendEntries posts entries. The first call finds out which key the service accepts (open point 19).
func (p *probe) sendEntries(list string, values ...string) (r response) {
	learn(&p.entryKey, []string{"entry", "value"}, func(key string) bool {
		body := make([]object, len(values))
		for i, value := range values {
			body[i] = object{key: value}
		}
		r = p.send(http.MethodPost, listPath(list)+"/entries", body, p.User.basic)
		return r.status < 300
	})
	return r
}

// deleteEntry deletes an entry. The first call finds out which path the service accepts (open point 22).
func (p *probe) deleteEntry(entry string) (r response) {
	p.need(isUUID.MatchString(entry), "the id of an entry is not a UUID") // no other text may get into the path
	deleted := learn(&p.entryDelete, []string{"{list}/{entry}", "{list}/entries/{entry}"}, func(form string) bool {
		r = p.send(http.MethodDelete, p.entryPath(form, entry), nil, p.User.basic)
		return r.status < 300
	})
	p.need(deleted, "DELETE of an entry returned %d", r.status)
	return r
}

func (p *probe) entryPath(form, entry string) string {
	return lists + "/" + strings.NewReplacer("{list}", p.WriteList, "{entry}", entry).Replace(form)
}

// clear removes all entries with one request. The first call finds out which method the service accepts (open point
// 24).
func (p *probe) clear() bool {
	return learn(&p.clearMethod, []string{http.MethodPost, http.MethodDelete, http.MethodPut}, func(method string) bool {
		r := p.send(method, listPath(p.WriteList)+"/entries/deletions", nil, p.User.basic)
		return r.status < 300 && p.until(func() bool { return p.total() == 0 })
	})
}

// deleteList deletes the DeleteList, once for all rules about it.
func (p *probe) deleteList() response {
	p.need(p.DeleteList != "", "it needs --delete-list")
	if p.listDeleted == nil {
		r := p.send(http.MethodDelete, listPath(p.DeleteList), nil, p.User.basic)
		p.listDeleted = &r
	}
	r := *p.listDeleted
	p.need(r.status < 300, "%s returned %d", r.request, r.status)
	return r
}

// told shows the response to a change (open points 21 and 23).
func (r response) told() { r.p.saw("%d, %s", r.status, r.shape()) }
