package program

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Settings says, for the help of a program, where its service comes from.
const Settings = `With WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER, WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD it works with that service
(WEBDELIVERY_AUTH=session logs in); without any of the four with a fake one of its own.`

// Variables are those without which there is no service.
var Variables = []string{"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD"}

// Configured says whether any of the Variables is set. A part of them is a mistake: were that taken for none, a pipeline
// that lacks a single one would be green, and have changed a fake service alone.
func Configured() bool {
	return slices.ContainsFunc(Variables, func(name string) bool { return os.Getenv(name) != "" })
}

// Service is where a program finds the service.
type Service struct {
	Client *webdelivery.Client
	stop   func()
}

// Close stops a fake service.
func (s *Service) Close() { s.stop() }

// Connect makes a client from the environment; settings that are missing are an error that names them. Without any it
// starts a fake service, which fill gives its contents, and says so, lest a pipeline without its settings is taken for
// one that works.
func Connect(stderr io.Writer, options []webdelivery.Option, fake []webdeliverytest.Option, fill func(*webdeliverytest.Server)) (*Service, error) {
	if Configured() {
		client, err := webdelivery.NewClientFromEnv(options...)
		return &Service{client, func() {}}, err
	}
	srv, err := webdeliverytest.Start(fake...)
	if err != nil {
		return nil, err
	}
	if fill != nil {
		fill(srv)
	}
	fmt.Fprintln(stderr, "WEBDELIVERY_BASE_URL is not set: this is a fake service, and nothing real happens.")
	client, err := srv.NewClient(webdelivery.SessionAuth(srv.Username, srv.Password), options...)
	if err != nil {
		srv.Close()
		return nil, err
	}
	return &Service{client, srv.Close}, nil
}
