package conformance

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// learnt holds what the run has found out about the service where the document leaves it open, and what it need not
// read again.
type learnt struct {
	sessionResponse *response      // the response to the creation of the one session of a run
	withEntries     map[int]string // ids of lists by their minimum number of entries

	begun []int64 // transactions of the run

	entryKey, entryDelete, clearMethod string
	listDeleted                        *response

	startParam string
	groupings  map[string][]string // by base path of the family
	span       [2]string           // of the queries
}

// accessRules are the rules about authentication.
func accessRules() []Rule {
	return []Rule{
		stated("4.5", "POST sessions with Basic credentials creates a session", func(p *probe) {
			p.want(p.sessionID() != "", "the result carries no session id")
		}),
		open("4.5", 5, "body of POST sessions", func(p *probe) {
			p.sessionID()
			_, form := sessionOf(*p.sessionResponse)
			p.saw("%s", form)
		}),
		unseen("4.5", "lifetime of a session", "the document does not give it"),
		stated("5", "HTTP Basic authenticates", func(p *probe) {
			for _, path := range p.readable() {
				r := p.get(path)
				p.want(r.status != http.StatusUnauthorized && r.status != http.StatusForbidden, "%s returned %d", r.request, r.status)
			}
		}),
		stated("5", "a session id as the cookie authtoken authenticates", func(p *probe) {
			id := p.sessionID()
			p.need(id != "", "there is no session id")
			for _, path := range p.readable() {
				r := p.send(http.MethodGet, path, nil, cookie(id))
				p.want(r.status != http.StatusUnauthorized && r.status != http.StatusForbidden, "%s returned %d", r.request, r.status)
			}
		}),
		stated("5", "a session id authenticates a purge", func(p *probe) {
			id := p.sessionID()
			p.need(id != "", "there is no session id")
			r := p.purge(purgeOf("EXPIRE", uri(exact, p.PurgeURI)), cookie(id))
			p.want(r.status < 400, "%s returned %d", r.request, r.status)
		}),
		stated("5", "tasks reject failed authentication with 401", func(p *probe) { p.denied(p.tasks("")) }),
		stated("5", "network lists reject failed authentication with 401", func(p *probe) { p.denied(lists) }),
		stated("7", "network lists reject an invalid authentication token with 401", func(p *probe) {
			p.send(http.MethodGet, lists, nil, cookie(absentID)).wanted(http.StatusUnauthorized)
		}),
		stated("5", "a user who may not view configuration gets 403 for network lists", func(p *probe) {
			p.need(p.Visitor.Name != "", "it needs WEBDELIVERY_VISITOR_USERNAME")
			p.send(http.MethodGet, lists, nil, p.Visitor.basic).wanted(http.StatusForbidden)
			p.send(http.MethodGet, listPath(p.someList()), nil, p.Visitor.basic).wanted(http.StatusForbidden)
		}),
		open("5", 6, "failed authentication at sessions", func(p *probe) {
			p.saw("returned %d", p.send(http.MethodPost, "/sessions", nil, stranger).status)
		}),
		open("5", 6, "failed authentication at statistics", func(p *probe) {
			r := p.send(http.MethodGet, events.path+"/data?"+p.query(events).Encode(), nil, stranger)
			p.saw("returned %d", r.status)
		}),
		open("7", 31, "body of an error that is not one of a purge", func(p *probe) {
			r := p.send(http.MethodGet, lists, nil, stranger)
			p.saw("%s, %s", cmp.Or(r.header.Get("Content-Type"), "no Content-Type"), r.shapeOfError())
		}),
	}
}

// readable returns a path of each area that can be read without an id.
func (p *probe) readable() []string {
	return []string{p.tasks(""), lists, events.path + "/data?" + p.query(events).Encode()}
}

func (p *probe) denied(path string) {
	for _, who := range []as{stranger, nobody, cookie(absentID)} {
		p.send(http.MethodGet, path, nil, who).wanted(http.StatusUnauthorized)
	}
}

// sessionID creates the one session of a run.
func (p *probe) sessionID() string {
	if p.sessionResponse == nil {
		r := p.send(http.MethodPost, "/sessions", nil, p.User.basic)
		p.want(r.status >= 200 && r.status < 300, "%s returned %d", r.request, r.status)
		p.sessionResponse = &r
	}
	id, _ := sessionOf(*p.sessionResponse)
	return id
}

// sessionOf finds the session id in any of its possible places (open point 5), and returns which one it is.
func sessionOf(r response) (id, form string) {
	var body any
	if r.isJSON(&body) {
		if text, ok := body.(string); ok {
			return text, "a JSON string"
		}
		object, _ := body.(map[string]any)
		for _, name := range []string{"id", "session_id", "sessionid", "authtoken", "token"} {
			if text, ok := object[name].(string); ok {
				return text, "an object with " + name
			}
		}
	}
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		if c.Name == "authtoken" {
			return c.Value, "a cookie"
		}
	}
	if body == nil && len(r.body) > 0 {
		return strings.TrimSpace(string(r.body)), "a text"
	}
	return "", "nothing that is known"
}

// versionRules are the rules of section 9.
func versionRules() []Rule {
	return []Rule{
		stated("9", "the version is the path segment v1 after the customer", func(p *probe) {
			for _, path := range p.readable() {
				p.want(p.get(path).status != http.StatusNotFound, "%s is not there", path)
			}
		}),
		open("9", 0, "other versions", func(p *probe) {
			address := *p.base
			address.Path, address.RawPath = address.Path[:len(address.Path)-len("v1")]+"v2", ""
			p.saw("v2 returns %d", p.sendTo(http.MethodGet, address.String()+lists, nil, p.User.basic).status)
		}),
		open("9", 0, "another customer", func(p *probe) {
			address := *p.base
			address.Path, address.RawPath = address.Path[:len(address.Path)-len("/"+p.Customer+"/v1")]+"/"+absentID+"/v1", ""
			p.saw("returned %d", p.sendTo(http.MethodGet, address.String()+lists, nil, p.User.basic).status)
		}),
		stated("9", "deprecated lists are hidden unless deprecated=true is passed", func(p *probe) {
			for _, query := range []string{"", "&deprecated=false"} {
				for _, l := range p.read(lists + "?count=100" + query).at("items").items() {
					p.want(!l.at("deprecated").flag(), "%s is deprecated and not hidden", l.path)
				}
			}
			shown := p.read(lists + "?count=100&deprecated=true").at("items").items()
			p.need(slices.ContainsFunc(shown, func(l node) bool { return l.at("deprecated").flag() }), "no list is deprecated")
		}),
		stated("9", "deprecated=true includes the lists that are not deprecated", func(p *probe) {
			some := p.read(lists + "?count=1").at("total").integer()
			all := p.read(lists + "?count=1&deprecated=true").at("total").integer()
			p.want(all >= some, "there are %d lists with deprecated ones and %d without", all, some)
		}),
	}
}
