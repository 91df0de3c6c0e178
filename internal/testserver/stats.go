package testserver

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
)

// statsRoutes are the methods of all families of security statistics (service document, section 4.3). The paths of the
// categories of a top-K other than data are open point 15.
func (s *Server) statsRoutes() (routes []route) {
	for _, f := range families {
		get := func(name string, params []string, handle func(*call) (response, error)) {
			routes = append(routes, route{method: http.MethodGet, path: f.path + "/" + name, params: params, handle: handle})
		}
		data := func(c *call) (response, error) { return getStats(c, f) }
		required, optional := f.params(s.dialect)
		params := slices.Concat(required, optional)
		routes = append(routes, route{method: http.MethodHead, path: f.path, params: params, handle: data})
		get("data", params, data)
		get("dimensions", nil, func(c *call) (response, error) { return c.list("dimensions", c.names(f.dimensions)), nil })
		if f.raw() {
			continue
		}
		get("groupings", nil, func(c *call) (response, error) { return c.list("groupings", c.groupings(f.groupings)), nil })
		get("metrics", nil, func(c *call) (response, error) { return c.list("metrics", c.names([]string{hits})), nil })
	}
	return routes
}

// getStats is GET .../data, and HEAD on the base path: its headers. The query runs while the server sends the response.
// Without any parameter, HEAD has nothing to check. There is no Content-Length, because the length of a stream is not
// known.
func getStats(c *call, f *family) (response, error) {
	stream := func(context.Context, io.Writer) error { return nil }
	if c.r.Method == http.MethodGet || len(c.query) > 0 {
		q, err := c.statsQuery(f)
		if err != nil {
			return response{}, err
		}
		stream = q.write
	}
	return response{status: http.StatusOK, header: http.Header{"Content-Type": {jsonType}}, stream: stream}, nil
}

// names returns names in the form of the dialect (open point 14).
func (c *call) names(names []string) (list []any) {
	for _, name := range names {
		switch c.s.dialect.Names {
		case "objects", "items":
			list = append(list, nameJSON{name})
		default:
			list = append(list, name)
		}
	}
	return list
}

// groupings returns grouping sets in the form of the dialect.
func (c *call) groupings(sets [][]string) (list []any) {
	for _, set := range sets {
		if c.s.dialect.Groupings == "joined" {
			list = append(list, c.names([]string{strings.Join(set, ",")})...)
		} else {
			list = append(list, c.names(set))
		}
	}
	return list
}

// list returns a list in the form of the dialect.
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
