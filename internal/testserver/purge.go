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
	all := slices.Clone(s.purges)
	for i := range all {
		all[i].URIs = slices.Clone(all[i].URIs)
	}
	return all
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

type purgeJSON struct {
	Code          int               `json:"code"`
	Description   string            `json:"description"`
	PurgeResponse purgeResponseJSON `json:"purge_response"`
	TransactionID int64             `json:"transaction_id"`
}

type purgeResponseJSON struct {
	TransactionStatusURI string `json:"transaction_status_uri"`
}

// purgeResponse is the purge response (service document, section 2.3). Its status is 201 unless the dialect has
// another. The body of a 303 has the code 201 (open point 7).
func (c *call) purgeResponse(id int64) response {
	relative := "/transactions/" + strconv.FormatInt(id, 10)
	status := map[string]int{
		"201": http.StatusCreated, "200": http.StatusOK,
		"303-body": http.StatusSeeOther, "303-location": http.StatusSeeOther,
	}[c.s.dialect.PurgeReply]
	code := status
	if status == http.StatusSeeOther {
		code = http.StatusCreated
	}
	answer := jsonResponse(status, purgeJSON{
		Code: code, Description: "request submitted", TransactionID: id,
		PurgeResponse: purgeResponseJSON{TransactionStatusURI: c.address(relative)},
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
	status, asks := http.StatusServiceUnavailable, strings.HasSuffix(s.dialect.TooFast, "-retry-after")
	if strings.HasPrefix(s.dialect.TooFast, "429") {
		status = http.StatusTooManyRequests
	}
	refused := refuse(status, "more than %d purge requests in %s", s.cfg.PurgeRate, s.cfg.PurgeWindow)
	if asks {
		seconds := max(1, (wait+time.Second-1)/time.Second) // rounded up
		return refused.with("Retry-After", strconv.Itoa(int(seconds)))
	}
	return refused
}
