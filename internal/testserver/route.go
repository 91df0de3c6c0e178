package testserver

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// route is one endpoint of the service document: a method, a path, and the settings of the common checks.
type route struct {
	method  string
	path    string   // relative to /{customer}/v1; an element "{name}" matches any one element
	params  []string // its query parameters; the server rejects all others
	body    bool     // accepts a JSON body; otherwise the server rejects a body
	basic   bool     // accepts only Basic credentials
	denied  int      // status if authentication fails; 0 means 401
	config  bool     // reads the configuration: only for users who may view it
	limited bool     // counts towards the purge rate
	handle  func(*call) (response, error)
}

// allRoutes lists every endpoint of the service. Those with the fewest named elements come first, so that "entries" is
// never the {entry} of /config/networklists/{list}/{entry}.
func (s *Server) allRoutes() []route {
	routes := slices.Concat(s.sessionRoutes(), s.taskRoutes(), s.purgeRoutes(), s.statsRoutes(), s.networkListRoutes())
	slices.SortStableFunc(routes, func(a, b route) int { return strings.Count(a.path, "{") - strings.Count(b.path, "{") })
	return routes
}

// place is a path, split into its elements. The place of a request is relative to {base_url}/{customer}/v1.
type place struct {
	inside   bool     // below {base_url}/{customer}/v1; otherwise there are no elements
	escaped  []string // as received
	elements []string // decoded one by one, so an escaped slash does not split an element
}

// split splits an escaped path. If the path cannot be decoded, split returns a place that is not inside.
func split(path string) place {
	p := place{inside: true, escaped: strings.Split(strings.TrimPrefix(path, "/"), "/")}
	for _, e := range p.escaped {
		decoded, err := url.PathUnescape(e)
		if err != nil {
			return place{}
		}
		p.elements = append(p.elements, decoded)
	}
	return p
}

func (p place) path() string { return "/" + strings.Join(p.escaped, "/") }

func (s *Server) locate(u *url.URL) place {
	at, depth := split(u.EscapedPath()), len(s.base.elements)
	if len(at.elements) <= depth || !slices.Equal(at.elements[:depth], s.base.elements) {
		return place{}
	}
	return place{inside: true, escaped: at.escaped[depth:], elements: at.elements[depth:]}
}

// match compares the path, and returns the elements that the names of the route's path match.
func (r route) match(at place) (map[string]string, bool) {
	pattern := strings.Split(strings.TrimPrefix(r.path, "/"), "/")
	if !at.inside || len(pattern) != len(at.elements) {
		return nil, false
	}
	vars := map[string]string{}
	for i, want := range pattern {
		got := at.elements[i]
		name, isVar := strings.CutPrefix(want, "{")
		switch {
		case isVar && got != "":
			vars[strings.TrimSuffix(name, "}")] = got
		case isVar || got != want:
			return nil, false
		}
	}
	return vars, true
}

// call is a request that the service is processing.
type call struct {
	s       *Server
	r       *http.Request
	at      place
	vars    map[string]string // named path elements, decoded
	query   url.Values        // only known parameters, each once and not empty
	body    []byte
	user    *User // nil: no valid credentials
	basic   bool  // the credentials were Basic
	arrived time.Time
	now     time.Time
}

// execute processes the request as one atomic step.
func (s *Server) execute(c *call) response {
	if s.unusable != nil {
		return errorResponse(refuse(http.StatusNotImplemented, "%v", s.unusable), s.dialect.Errors)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.cfg.Clock.Now()
	rt, err := s.find(c)
	if err == nil {
		err = c.admit(rt)
	}
	var answer response
	if err == nil {
		answer, err = rt.handle(c)
	}
	switch {
	case err == nil:
		return answer
	case rt.limited: // the document shows the body of a purge in every dialect (service document, sections 2.3 and 7)
		return errorResponse(err, "code")
	default:
		return errorResponse(err, s.dialect.Errors)
	}
}

// find looks up the endpoint: the first routes that match. It returns 404 for an unknown path, and 405 for a known path
// with another method.
func (s *Server) find(c *call) (route, error) {
	var allowed []string
	for _, rt := range s.routes {
		vars, ok := rt.match(c.at)
		if !ok || allowed != nil && len(vars) > len(c.vars) {
			continue
		}
		if c.vars = vars; rt.method == c.r.Method {
			return rt, nil
		}
		allowed = append(allowed, rt.method)
	}
	if allowed == nil {
		return route{}, refuse(http.StatusNotFound, "no such resource")
	}
	slices.Sort(allowed)
	return route{}, refuse(http.StatusMethodNotAllowed, "method %s is not allowed here", c.r.Method).
		with("Allow", strings.Join(slices.Compact(allowed), ", "))
}

// admit makes the checks that all endpoints share, in the order of the package comment.
func (c *call) admit(rt route) error {
	if err := c.authenticate(rt); err != nil {
		return err
	}
	if rt.config && c.user.MayNotViewConfig {
		return refuse(http.StatusForbidden, "not authorized to view configuration")
	}
	if rt.limited {
		if err := c.s.limit(c.arrived); err != nil {
			return err
		}
	}
	if err := c.negotiate(); err != nil {
		return err
	}
	if len(c.body) > 0 && !rt.body {
		return refuse(http.StatusBadRequest, "this request takes no body")
	}
	return c.parseQuery(rt.params)
}

// negotiate rejects with 406 a body that is not declared as JSON, and a client that does not accept JSON.
func (c *call) negotiate() error {
	if len(c.body) > 0 {
		declared, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
		if err != nil || declared != jsonType {
			return refuse(http.StatusNotAcceptable, "the body must be declared as %s", jsonType)
		}
	}
	if accept := c.r.Header.Get("Accept"); accept != "" && !strings.Contains(accept, jsonType) && !strings.Contains(accept, "*/*") {
		return refuse(http.StatusNotAcceptable, "responses have the type %s, which Accept excludes", jsonType)
	}
	return nil
}

// parseQuery rejects unknown parameters, duplicates, and parameters without a value.
func (c *call) parseQuery(names []string) error {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, "malformed query string")
	}
	for name, values := range query {
		switch {
		case !slices.Contains(names, name):
			return refuse(http.StatusBadRequest, "unknown query parameter %q", name)
		case len(values) > 1:
			return refuse(http.StatusBadRequest, "query parameter %q is given %d times", name, len(values))
		case values[0] == "":
			return refuse(http.StatusBadRequest, "query parameter %q is empty", name)
		}
	}
	c.query = query
	return nil
}
