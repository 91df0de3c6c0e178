package testserver

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// statsRoutes are the methods of every family of security statistics (service-interface section 4.3; those of the
// categories of a top-K beside data, open point 15).
func (s *Server) statsRoutes() []route {
	var routes []route
	for _, f := range families {
		get := func(name string, params []string, handle func(*call) (reply, error)) {
			routes = append(routes, route{method: http.MethodGet, path: f.path + "/" + name, params: params, handle: handle})
		}
		head := func(c *call) (reply, error) { return headStats(c, f) }
		routes = append(routes, route{method: http.MethodHead, path: f.path, params: f.params(s.dialect), handle: head})
		get("data", f.params(s.dialect), func(c *call) (reply, error) { return getStats(c, f) })
		get("dimensions", nil, func(c *call) (reply, error) { return c.names("dimensions", f.dimensions), nil })
		if f.raw() {
			continue
		}
		get("groupings", nil, func(c *call) (reply, error) { return c.groupings(f.groupings), nil })
		get("metrics", nil, func(c *call) (reply, error) { return c.names("metrics", []string{hits}), nil })
	}
	return routes
}

// getStats is GET .../data. The query runs while the reply is sent.
func getStats(c *call, f *family) (reply, error) {
	q, err := c.statsQuery(f)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {jsonType}}, stream: q.write}, nil
}

// headStats is HEAD on the base path: the headers of GET .../data. With parameters they must be right as they are there;
// without any there is nothing to check. There is no Content-Length, as the length of a stream is not known.
func headStats(c *call, f *family) (reply, error) {
	if len(c.query) > 0 {
		return getStats(c, f)
	}
	nothing := func(context.Context, io.Writer) error { return nil }
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {jsonType}}, stream: nothing}, nil
}

// names is a list of names as the dialect has it (open point 14).
func (c *call) names(member string, names []string) reply {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = c.name(name)
	}
	return c.list(member, list)
}

// groupings is a list of grouping sets as the dialect has it.
func (c *call) groupings(sets [][]string) reply {
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

func (c *call) list(member string, list []any) reply {
	switch c.s.dialect.Names {
	case "member":
		return jsonReply(http.StatusOK, map[string]any{member: list})
	case "items":
		return jsonReply(http.StatusOK, map[string]any{"items": list})
	default:
		return jsonReply(http.StatusOK, list)
	}
}
