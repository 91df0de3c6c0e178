package transport

import (
	"slices"
	"strings"
)

// maxRefusedPlaces bounds the places that are held. The oldest one makes room.
const maxRefusedPlaces = 32

// area returns the first element of a path below the base, such as config. The areas of the API are tasks, stats,
// cache, transactions, sessions and config.
func area(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// refusedPlace got a 401 although the service had accepted the credential before. At first it is a method and path,
// without the query. If another one of the area gets a 401 too, it is the area, until the service accepts the credential
// there. It cools down by itself. Its owner holds a lock.
type refusedPlace struct {
	coolDown

	method, path string // of the last refusal
	whole        bool   // the place is the area
	mixed        bool   // the service has accepted the credential in the area since, so the place is a path
	alone        bool   // the service has accepted the credential anywhere since: a 401 here says nothing of other places
	last         *refusalError
	probe        *probe // under way at this place; nil without one
}

func (h *refusedPlace) refused(r *Request, refusal *refusalError) {
	h.strike(1, refusal)
	h.whole = h.whole || !h.at(r)
	h.method, h.path, h.last = r.Method, r.Path, refusal
}

// at reports whether r has the method and path of the last refusal.
func (h *refusedPlace) at(r *Request) bool { return h.path == r.Path && h.method == r.Method }

// near reports whether r is in the same area.
func (h *refusedPlace) near(r *Request) bool { return area(h.path) == area(r.Path) }

// refusedPlaces is mostly empty. For each area there is one place at most that is not mixed.
type refusedPlaces []*refusedPlace

// find returns the place that holds r: its method and path, or else its area.
func (t *refusedPlaces) find(r *Request) (found *refusedPlace) {
	for _, h := range *t {
		if h.at(r) {
			return h
		}
		if h.whole && h.near(r) {
			found = h
		}
	}
	return found
}

// concerned returns the place that a 401 of r belongs to: the one that holds r, or else one that becomes the area of r.
func (t *refusedPlaces) concerned(r *Request) *refusedPlace {
	if h := t.find(r); h != nil {
		return h
	}
	if i := slices.IndexFunc(*t, func(h *refusedPlace) bool { return !h.mixed && h.near(r) }); i >= 0 {
		return (*t)[i]
	}
	return nil
}

// near reports whether there is a place in the area of r.
func (t *refusedPlaces) near(r *Request) bool {
	return slices.ContainsFunc(*t, func(h *refusedPlace) bool { return h.near(r) })
}

// add returns a new place for r.
func (t *refusedPlaces) add(r *Request) *refusedPlace {
	if len(*t) == maxRefusedPlaces {
		*t = slices.Delete(*t, 0, 1)
	}
	h := &refusedPlace{method: r.Method, path: r.Path}
	*t = append(*t, h)
	return h
}

// end ends a probe.
func (t *refusedPlaces) end(ended *probe) {
	for _, h := range *t {
		if h.probe == ended {
			h.probe = nil
		}
	}
}

// accepted notes that the service accepted the credential of a call. Its method and path are held no more, and of its
// area only the method and path of the last refusal.
func (t *refusedPlaces) accepted(r *Request) {
	if len(*t) == 0 {
		return
	}
	*t = slices.DeleteFunc(*t, func(h *refusedPlace) bool { return h.at(r) })
	for _, h := range *t {
		h.alone = true
		if h.near(r) {
			h.whole, h.mixed = false, true
		}
	}
}
