package testserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Purge is an accepted purge request.
type Purge struct {
	Time          time.Time // arrival, by the server's clock
	User          string
	Action        string
	URIs          []PurgeURI
	TransactionID int64
}

// PurgeURI is one uri object of a purge request (service document, section 2.2).
type PurgeURI struct {
	MatchMode             string
	URIPattern            string
	CacheKeyModifierRegex string
}

// Purged returns the accepted purge requests, in order.
func (s *Server) Purged() []Purge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.purges)
}

func (s *Server) purgeRoutes() []route {
	denied, _ := strconv.Atoi(s.dialect.TransactionDenied) // 0 for a value that check rejects
	return []route{
		{
			method: http.MethodPost, path: "/cache/purge", body: true, limited: true,
			denied: http.StatusForbidden, handle: submitPurge,
		},
		{method: http.MethodGet, path: "/transactions/{transaction_id}", denied: denied, handle: getTransaction},
	}
}

// submitPurge is POST /cache/purge (service document, section 4.4).
func submitPurge(c *call) (response, error) {
	action, uris, err := parsePurge(c.body)
	if err != nil {
		return response{}, refuse(http.StatusBadRequest, "%v", err)
	}
	for _, uri := range uris {
		if err := c.mayPurge(uri); err != nil {
			return response{}, refuse(http.StatusBadRequest, "%v: uri_pattern %q", err, uri.URIPattern)
		}
	}
	id := c.s.newTransaction(c.now)
	c.s.purges = append(c.s.purges, Purge{
		Time: c.arrived, User: c.user.Name, Action: action, URIs: uris, TransactionID: id,
	})
	return c.purgeResponse(id), nil
}

// purgeResponse is the purge response (service document, section 2.3). Its status is 201 unless the dialect has
// another. The body of a 303 has the code 201 (open point 7).
func (c *call) purgeResponse(id int64) response {
	relative := "/transactions/" + strconv.FormatInt(id, 10)
	status, code := http.StatusCreated, http.StatusCreated
	switch c.s.dialect.PurgeReply {
	case "200":
		status, code = http.StatusOK, http.StatusOK
	case "303-body", "303-location":
		status = http.StatusSeeOther
	}
	answer := jsonResponse(status, map[string]any{
		"code": code, "description": "request submitted", "transaction_id": id,
		"purge_response": map[string]string{"transaction_status_uri": c.address(relative)},
	})
	if c.s.dialect.PurgeReply == "303-location" {
		answer = response{status: status, header: http.Header{}}
	}
	if status == http.StatusSeeOther {
		answer.header.Set("Location", c.s.base.path()+relative)
	}
	return answer
}

// limit allows at most PurgeRate requests in any window of PurgeWindow (service document, section 8). Arrivals count,
// whatever the later response to the request is. Requests rejected here count only with CountRefused. The document
// leaves the response to such a request open (open point 8).
func (s *Server) limit(arrived time.Time) error {
	rate, window := s.cfg.PurgeRate, s.cfg.PurgeWindow
	if rate < 0 {
		return nil
	}
	// A delayed request may reach this point after one that arrived later, so look up its place.
	at, _ := slices.BinarySearchFunc(s.arrivals, arrived, time.Time.Compare)
	first, last := max(0, at-rate), min(len(s.arrivals), at+rate)
	near := slices.Concat(s.arrivals[first:at], []time.Time{arrived}, s.arrivals[at:last])
	for i := 0; i+rate < len(near); i++ {
		if near[i+rate].Sub(near[i]) < window {
			if s.cfg.CountRefused {
				s.arrivals = slices.Insert(s.arrivals, at, arrived)
			}
			return s.tooFast(near[i].Add(window).Sub(arrived))
		}
	}
	s.arrivals = slices.Insert(s.arrivals, at, arrived)
	return nil
}

// tooFast rejects a purge above the rate, in the form of the dialect.
func (s *Server) tooFast(wait time.Duration) error {
	form, asks := strings.CutSuffix(s.dialect.TooFast, "-retry-after")
	status, _ := strconv.Atoi(form)
	refused := refuse(status, "more than %d purge requests in %s", s.cfg.PurgeRate, s.cfg.PurgeWindow)
	if asks {
		seconds := max(1, (wait+time.Second-1)/time.Second) // rounded up
		refused = refused.with("Retry-After", strconv.Itoa(int(seconds)))
	}
	return refused
}
