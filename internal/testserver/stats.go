package testserver

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// statsRoutes are the methods of all families of security statistics (service document, section 4.3). The paths of the
// categories of a top-K other than data are open point 15.
func (s *Server) statsRoutes() []route {
	var routes []route
	for _, f := range families {
		get := func(name string, params []string, handle func(*call) (response, error)) {
			routes = append(routes, route{method: http.MethodGet, path: f.path + "/" + name, params: params, handle: handle})
		}
		head := func(c *call) (response, error) { return headStats(c, f) }
		routes = append(routes, route{method: http.MethodHead, path: f.path, params: f.params(s.dialect), handle: head})
		get("data", f.params(s.dialect), func(c *call) (response, error) { return getStats(c, f) })
		get("dimensions", nil, func(c *call) (response, error) { return c.names("dimensions", f.dimensions), nil })
		if f.raw() {
			continue
		}
		get("groupings", nil, func(c *call) (response, error) { return c.groupings(f.groupings), nil })
		get("metrics", nil, func(c *call) (response, error) { return c.names("metrics", []string{hits}), nil })
	}
	return routes
}

// getStats is GET .../data. The query runs while the server sends the response.
func getStats(c *call, f *family) (response, error) {
	q, err := c.statsQuery(f)
	if err != nil {
		return response{}, err
	}
	return response{status: http.StatusOK, header: http.Header{"Content-Type": {jsonType}}, stream: q.write}, nil
}

// headStats is HEAD on the base path: the headers of GET .../data. Parameters must be valid as there; without any
// parameter there is nothing to check. There is no Content-Length, because the length of a stream is not known.
func headStats(c *call, f *family) (response, error) {
	if len(c.query) > 0 {
		return getStats(c, f)
	}
	nothing := func(context.Context, io.Writer) error { return nil }
	return response{status: http.StatusOK, header: http.Header{"Content-Type": {jsonType}}, stream: nothing}, nil
}

// names returns a list of names in the form of the dialect (open point 14).
func (c *call) names(member string, names []string) response {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = c.name(name)
	}
	return c.list(member, list)
}

// groupings returns a list of grouping sets in the form of the dialect.
func (c *call) groupings(sets [][]string) response {
	list := make([]any, len(sets))
	for i, set := range sets {
		if c.s.dialect.Groupings == "joined" {
			list[i] = c.name(strings.Join(set, ","))
			continue
		}
		inner := make([]any, len(set))
		for j, name := range set {
			inner[j] = c.name(name)
		}
		list[i] = inner
	}
	return c.list("groupings", list)
}

func (c *call) name(name string) any {
	switch c.s.dialect.Names {
	case "objects", "items":
		return nameJSON{name}
	default:
		return name
	}
}

func (c *call) list(member string, list []any) response {
	switch c.s.dialect.Names {
	case "member":
		return jsonResponse(http.StatusOK, map[string]any{member: list})
	case "items":
		return jsonResponse(http.StatusOK, map[string]any{"items": list})
	default:
		return jsonResponse(http.StatusOK, list)
	}
}
