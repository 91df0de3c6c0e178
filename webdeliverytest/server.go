package webdeliverytest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Server is a fake service that listens. Make it with [NewServer] or [Start]. It is safe for concurrent use; its fields
// are to be read only.
type Server struct {
	// URL is the base URL for webdelivery.NewClient: with the path of [WithBasePath], without the customer.
	URL string
	// Customer is the one that the service has: "acme" unless [WithCustomer] says otherwise.
	Customer string
	// Username and Password are those of the first user: "alice" and "correct-horse-battery" unless [WithUsers] says
	// otherwise.
	Username, Password string
	// Clock is the time by which tasks, transactions and sessions age.
	Clock *Clock

	fake      *testserver.Server
	transport *http.Transport
}

// NewServer starts a fake service for a test and closes it when the test ends. An option that makes no sense, or an
// address that cannot be had, fails the test at once.
//
// In a testing/synctest bubble it is called with the t of the bubble and [InMemory]; it is then closed inside of it.
func NewServer(t testing.TB, options ...Option) *Server {
	t.Helper()
	s, err := Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a fake service where there is no test that it could belong to: in TestMain, in an example, in a program.
// Whoever starts it calls [Server.Close].
func Start(options ...Option) (*Server, error) {
	var set settings
	for _, option := range options {
		if option == nil {
			return nil, fmt.Errorf("webdeliverytest: an option is nil")
		}
		if err := option(&set); err != nil {
			return nil, fmt.Errorf("webdeliverytest: %w", err)
		}
	}
	fake := testserver.New(set.config)
	err := fake.Err()
	if err == nil {
		err = set.listen(fake)
	}
	if err != nil {
		_ = fake.Close()
		return nil, fmt.Errorf("webdeliverytest: %w", err)
	}
	customer, user := fake.Identity()
	s := &Server{
		URL: fake.URL(), Customer: customer, Username: user.Name, Password: user.Password,
		Clock: &Clock{fake.Clock()}, fake: fake, transport: fake.Transport(),
	}
	s.transport.MaxIdleConnsPerHost = 128 // as many as the SDK keeps of its own
	return s, nil
}

// Close ends every request and connection and returns when nothing of the server runs any more. It may be called again.
func (s *Server) Close() {
	s.transport.CloseIdleConnections()
	_ = s.fake.Close() // it has nothing to report
}

// Client makes a client of the SDK that uses Basic authentication as the first user. The options come after the one that
// leads it here, [webdelivery.WithHTTPClient] with [Server.HTTPClient]. Options that make no sense fail the test.
func (s *Server) Client(t testing.TB, options ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	return s.ClientAs(t, webdelivery.BasicAuth(s.Username, s.Password), options...)
}

// ClientAs is [Server.Client] with other credentials:
//
//	srv.ClientAs(t, webdelivery.SessionAuth(srv.Username, srv.Password))
func (s *Server) ClientAs(t testing.TB, auth webdelivery.Auth, options ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	client, err := s.NewClient(auth, options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// NewClient is [Server.ClientAs] where there is no test; its errors are those of [webdelivery.NewClient].
func (s *Server) NewClient(auth webdelivery.Auth, options ...webdelivery.Option) (*webdelivery.Client, error) {
	here := []webdelivery.Option{webdelivery.WithHTTPClient(s.HTTPClient())}
	return webdelivery.NewClient(s.URL, s.Customer, auth, append(here, options...)...)
}

// HTTPClient makes an http.Client that reaches the server, also one in memory, where it reaches nothing else. All that
// are made share their connections, which end with the server.
func (s *Server) HTTPClient() *http.Client {
	return &http.Client{Transport: s.transport}
}
