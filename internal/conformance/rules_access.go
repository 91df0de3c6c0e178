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
		stated("5", "HTTP Basic authenticates", func(p *probe) { p.admitted(p.User.basic) }),
		stated("5", "a session id as the cookie authtoken authenticates", func(p *probe) {
			id := p.sessionID()
			p.need(id != "", "there is no session id")
			p.admitted(cookie(id))
		}),
		stated("5", "a session id authenticates a purge", func(p *probe) {
			id := p.sessionID()
			p.need(id != "", "there is no session id")
			r := p.purgeOne(cookie(id))
			p.want(r.status < 400, "%s returned %d", r.request, r.status)
		}),
		stated("5", "tasks reject failed authentication with 401", func(p *probe) { p.denied(p.tasks("")) }),
		stated("5", "network lists reject failed authentication with 401", func(p *probe) { p.denied(lists) }),
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

func (p *probe) admitted(who as) {
	for _, path := range p.readable() {
		r := p.send(http.MethodGet, path, nil, who)
		p.want(r.status != http.StatusUnauthorized && r.status != http.StatusForbidden, "%s returned %d", r.request, r.status)
	}
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
		open("9", 0, "another version, and another customer", func(p *probe) {
			elsewhere := func(path string) int {
				address := *p.base
				address.Path, address.RawPath = strings.TrimSuffix(address.Path, "/"+p.Customer+"/v1")+path, ""
				return p.sendTo(http.MethodGet, address.String()+lists, nil, p.User.basic).status
			}
			p.saw("v2 returns %d, another customer %d", elsewhere("/"+p.Customer+"/v2"), elsewhere("/"+absentID+"/v1"))
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
