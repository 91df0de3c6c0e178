package program

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Settings is the part of a program's help that says how to choose the service.
const Settings = `Set WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER, WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD (or
WEBDELIVERY_PASSWORD_FILE) to use a service. WEBDELIVERY_AUTH=session logs in; without it, each request carries the
password. WEBDELIVERY_DIALECT holds what "doctor" found out. If none of the first five is set, the program starts a fake
service of its own.`

// Variables are the environment variables that name a service.
var Variables = []string{
	"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD", "WEBDELIVERY_PASSWORD_FILE",
}

// Configured reports whether any of the Variables is set. If only some are set, that is a mistake. If programs then
// used the fake service, a pipeline that lacks one variable would pass and change nothing real.
func Configured() bool {
	return slices.ContainsFunc(Variables, func(name string) bool { return os.Getenv(name) != "" })
}

// missing returns the variables that a service needs and that are not set. A file may hold the password.
func missing() (names []string) {
	file := os.Getenv("WEBDELIVERY_PASSWORD_FILE") != ""
	for _, name := range Variables[:4] {
		if os.Getenv(name) == "" && (name != "WEBDELIVERY_PASSWORD" || !file) {
			names = append(names, name)
		}
	}
	return names
}

// Service is the service that a program works with.
type Service struct {
	Client *webdelivery.Client
	stop   func()
}

// Close stops the service if it is a fake.
func (s *Service) Close() { s.stop() }

// Connect creates a client from the environment. If only some of the Variables are set, it returns an error that names
// the missing ones. If none is set, it starts a fake service, calls fill to add its contents, and prints that the
// service is a fake.
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
	fmt.Fprintln(stderr, "WEBDELIVERY_BASE_URL is not set: using a fake service; nothing real happens.")
	client, err := srv.NewClient(webdelivery.SessionAuth(srv.Username, srv.Password), options...)
	if err != nil {
		srv.Close()
		return nil, err
	}
	return &Service{client, srv.Close}, nil
}
