package conformance

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// accessRules are the rules about authentication.
func accessRules() []Rule {
	return []Rule{
		stated("4.5", "POST sessions with Basic credentials creates a session", func(p *probe) {
			id, _ := p.session()
			p.want(id != "", "the result carries no session id")
		}),
		open("4.5", 5, "body of POST sessions", func(p *probe) {
			_, form := p.session()
			p.saw("%s", form)
		}),
		unseen("4.5", "lifetime of a session", "the document does not give it"),
		stated("5", "HTTP Basic authenticates", func(p *probe) { p.admitted(p.User.basic) }),
		stated("5", "a session id as the cookie authtoken authenticates", func(p *probe) { p.admitted(p.inSession()) }),
		stated("5", "a session id authenticates a purge", func(p *probe) { p.purgeOne(p.inSession()).answered(taken) }),
		stated("5", "tasks reject failed authentication with 401", func(p *probe) {
			p.denied(p.tasks(""))
			if tasks := p.readTasks(""); len(tasks) > 0 {
				task := p.tasks("/" + url.PathEscape(tasks[0].at("id").text()))
				p.send(http.MethodGet, task, nil, stranger).wanted(http.StatusUnauthorized)
			}
		}),
		stated("5", "network lists reject failed authentication with 401", func(p *probe) { p.denied(lists) }),
		stated("5", "a user who may not view configuration gets 403 for network lists", func(p *probe) {
			p.need(p.Visitor.Name != "", "it needs WEBDELIVERY_VISITOR_USERNAME")
			p.send(http.MethodGet, lists, nil, p.Visitor.basic).wanted(http.StatusForbidden)
			p.send(http.MethodGet, listPath(p.listsOf("")[0]), nil, p.Visitor.basic).wanted(http.StatusForbidden)
		}),
		open("5", 6, "failed authentication at sessions, statistics and transactions", func(p *probe) {
			get := func(path string, who as) int { return p.send(http.MethodGet, path, nil, who).status }
			p.saw("a bad password returns %d, %d and %d, an invalid session at transactions %d",
				p.send(http.MethodPost, "/sessions", nil, stranger).status, get(events.path+"/data?"+p.query(events).Encode(), stranger),
				get(transactionPath(1), stranger), get(transactionPath(1), cookie(absentID)))
		}),
		open("7", 31, "body of an error that is not one of a purge", func(p *probe) {
			r := p.send(http.MethodGet, lists, nil, stranger)
			p.saw("%s, %s", cmp.Or(r.header.Get("Content-Type"), "no Content-Type"), r.shape())
		}),
	}
}

// admitted checks that the credentials open each area that can be read without an id.
func (p *probe) admitted(who as) {
	for _, path := range []string{p.tasks(""), lists, events.path + "/data?" + p.query(events).Encode()} {
		r := p.send(http.MethodGet, path, nil, who)
		p.want(r.status != http.StatusUnauthorized && r.status != http.StatusForbidden, "%s returned %d", r.request, r.status)
	}
}

func (p *probe) denied(path string) {
	for _, who := range []as{stranger, func(*http.Request) {}, cookie(absentID)} {
		p.send(http.MethodGet, path, nil, who).wanted(http.StatusUnauthorized)
	}
}

func (p *probe) inSession() as {
	id, _ := p.session()
	p.need(id != "", "there is no session id")
	return cookie(id)
}

// session creates the one session of a run. It finds the id in any of its possible places (open point 5), and returns
// which one it is.
func (p *probe) session() (id, form string) {
	if p.created == nil {
		r := p.send(http.MethodPost, "/sessions", nil, p.User.basic)
		p.want(r.status >= 200 && r.status < 300, "%s returned %d", r.request, r.status)
		p.created = &r
	}
	r := *p.created
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
