package webdeliverytest

import (
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// Request is a request that the server received, even if it rejected or cut it.
type Request struct {
	Time     time.Time   // arrival, by Server.Clock
	Method   string      // as received
	Path     string      // escaped, as received
	RawQuery string      // as received
	Header   http.Header // as received, credentials included
	Body     []byte      // the part that the server read
	User     string      // user whose credentials it carried; "" without valid credentials
	Status   int         // status of the response; 0 before it, or if the connection was closed before it
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

// Count returns the number of received requests that match. The arguments work like Method and Path of [FaultRule]:
// Count("", "") counts all requests.
func (s *Server) Count(method, path string) int { return s.fake.Count(method, path) }

// Purge is a purge request that the server accepted. Its fields can be compared with the submitted values:
//
//	assert.Equal(t, []webdelivery.PurgeURI{webdelivery.Exact(uri)}, srv.Purged()[0].URIs)
type Purge struct {
	Time          time.Time               // arrival, by Server.Clock
	User          string                  // name of the user
	Action        webdelivery.PurgeAction // as received
	URIs          []webdelivery.PurgeURI  // as received, in order
	TransactionID int64                   // transaction_id of the response
}

// Purged returns copies of all accepted purge requests, in order of arrival.
func (s *Server) Purged() []Purge {
	accepted := s.fake.Purged()
	all := make([]Purge, len(accepted))
	for i, p := range accepted {
		all[i] = Purge{Time: p.Time, User: p.User, Action: webdelivery.PurgeAction(p.Action), TransactionID: p.TransactionID}
		for _, uri := range p.URIs {
			all[i].URIs = append(all[i].URIs, webdelivery.PurgeURI{
				MatchMode: string(uri.MatchMode), URIPattern: uri.URIPattern,
				CacheKeyModifierRegex: uri.CacheKeyModifierRegex,
			})
		}
	}
	return all
}

// Logins returns the number of sessions created so far, including ended ones.
func (s *Server) Logins() int { return s.fake.Logins() }
