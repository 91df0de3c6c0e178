package transport

import "slices"

// maxRefusedPaths bounds the paths that are held alone. The oldest one makes room.
const maxRefusedPaths = 32

// refusedPath is a method and path, without the query, that got a 401 although the service had accepted the credential
// before. It cools down by itself. Its owner holds a lock.
type refusedPath struct {
	coolDown

	method, path string
	last         *refusalError
	alone        bool   // the service has accepted the credential elsewhere since: a 401 here says nothing of other paths
	probe        *probe // under way at this path; nil without one
}

func (h *refusedPath) refused(refusal *refusalError) {
	h.strike(1, refusal)
	h.last = refusal
}

// refusedPaths is mostly empty.
type refusedPaths []*refusedPath

func (t *refusedPaths) find(r *Request) *refusedPath {
	for _, h := range *t {
		if h.path == r.Path && h.method == r.Method {
			return h
		}
	}
	return nil
}

func (t *refusedPaths) add(r *Request) *refusedPath {
	if len(*t) == maxRefusedPaths {
		*t = slices.Delete(*t, 0, 1)
	}
	h := &refusedPath{method: r.Method, path: r.Path}
	*t = append(*t, h)
	return h
}

// end ends a probe.
func (t *refusedPaths) end(ended *probe) {
	for _, h := range *t {
		if h.probe == ended {
			h.probe = nil
		}
	}
}

// accepted notes that the service accepted the credential at a path, which holds it no more.
func (t *refusedPaths) accepted(r *Request) {
	if len(*t) == 0 {
		return
	}
	*t = slices.DeleteFunc(*t, func(h *refusedPath) bool { return h.path == r.Path && h.method == r.Method })
	for _, h := range *t {
		h.alone = true
	}
}
