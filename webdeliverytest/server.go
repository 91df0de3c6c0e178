package webdeliverytest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Server is a fake service that listens for requests. Create it with [NewServer] or [Start]. It is safe for concurrent
// use. Do not change its fields.
type Server struct {
	// URL is the base URL for webdelivery.NewClient. It does not include the customer.
	URL string
	// Customer is the only customer of the service. [WithCustomer] sets it; the default is "acme".
	Customer string
	// Username and Password are those of the first user. [WithUsers] sets them; the defaults are "alice" and
	// "correct-horse-battery".
	Username, Password string
	// Clock is the clock by which tasks, transactions and sessions age.
	Clock *Clock

	fake      *testserver.Server
	transport *http.Transport
}

// NewServer starts a fake service for a test and closes it when the test ends. It fails the test at once if an option
// is invalid, or if the server cannot listen on its address.
//
// In a testing/synctest bubble, pass the t of the bubble and [InMemory]. The server is then closed inside the bubble.
func NewServer(t testing.TB, options ...Option) *Server {
	t.Helper()
	s, err := Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a fake service outside a test, such as in TestMain, an example or a program. The caller must call
// [Server.Close]. Start returns an error if an option is invalid, or if the server cannot listen on its address.
func Start(options ...Option) (*Server, error) {
	var set settings
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("webdeliverytest: options[%d]: the option is nil", i)
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
	s.transport.MaxIdleConnsPerHost = 128 // the same number as the SDK's own transport
	return s, nil
}

// Close ends all requests and connections, and returns when all goroutines of the server have ended. Further calls do
// nothing.
func (s *Server) Close() {
	s.transport.CloseIdleConnections()
	_ = s.fake.Close() // it has nothing to report
}

// Client creates an SDK client for this server, with Basic authentication as the first user. It applies
// [webdelivery.WithHTTPClient] with [Server.HTTPClient] first, then the given options. If an option is invalid, Client
// fails the test.
func (s *Server) Client(t testing.TB, options ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	return s.ClientAs(t, webdelivery.BasicAuth(s.Username, s.Password), options...)
}

// ClientAs works like [Server.Client], with other credentials:
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

// NewClient works like [Server.ClientAs] outside a test. It returns the error of [webdelivery.NewClient].
func (s *Server) NewClient(auth webdelivery.Auth, options ...webdelivery.Option) (*webdelivery.Client, error) {
	here := []webdelivery.Option{webdelivery.WithHTTPClient(s.HTTPClient())}
	return webdelivery.NewClient(s.URL, s.Customer, auth, append(here, options...)...)
}

// HTTPClient creates an http.Client for this server. If the server is in memory, the client can reach no other address.
// All clients from HTTPClient share their connections, which Close closes.
func (s *Server) HTTPClient() *http.Client {
	return &http.Client{Transport: s.transport}
}
