package webdeliverytest

import (
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// Request is one request that was received, also one that was refused or cut.
type Request struct {
	Time     time.Time   // arrival, by Server.Clock
	Method   string      // as received
	Path     string      // escaped, as received
	RawQuery string      // as received
	Header   http.Header // as received, credentials included
	Body     []byte      // what was read of it
	User     string      // whose credentials it carried; "" when they were nobody's
	Status   int         // that was answered; 0 when the connection was closed before, or nothing is answered yet
	Conn     int         // number of its connection, from 1
}

// Requests returns copies of all requests, in order of arrival.
func (s *Server) Requests() []Request {
	received := s.fake.Requests()
	all := make([]Request, len(received))
	for i, r := range received {
		all[i] = Request(r)
	}
	return all
}

// Count returns how many requests there were; method and path choose as in [FaultRule], "" and "" all of them.
func (s *Server) Count(method, path string) int { return s.fake.Count(method, path) }

// Purge is a purge request that was accepted. Its fields compare with what was submitted:
//
//	assert.Equal(t, []webdelivery.PurgeURI{webdelivery.Exact(uri)}, srv.Purged()[0].URIs)
type Purge struct {
	Time          time.Time               // arrival, by Server.Clock
	User          string                  // who purged
	Action        webdelivery.PurgeAction // as received
	URIs          []webdelivery.PurgeURI  // as received, in order
	TransactionID int64                   // that was answered
}

// Purged returns copies of the purge requests that were accepted, in order of arrival.
func (s *Server) Purged() []Purge {
	accepted := s.fake.Purged()
	all := make([]Purge, len(accepted))
	for i, p := range accepted {
		all[i] = Purge{Time: p.Time, User: p.User, Action: webdelivery.PurgeAction(p.Action), TransactionID: p.TransactionID}
		for _, uri := range p.URIs {
			all[i].URIs = append(all[i].URIs, webdelivery.PurgeURI{
				MatchMode: webdelivery.MatchMode(uri.MatchMode), URIPattern: uri.URIPattern,
				CacheKeyModifierRegex: uri.CacheKeyModifierRegex,
			})
		}
	}
	return all
}

// Logins returns how many sessions were created, those that have ended included.
func (s *Server) Logins() int { return s.fake.Logins() }

// Connections returns how many connections were accepted, those that have ended included.
func (s *Server) Connections() int { return s.fake.Connections() }
