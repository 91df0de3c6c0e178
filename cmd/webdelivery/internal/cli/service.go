package cli

import (
	"os"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// connect creates a client from the environment. With --fake, it starts a fake service that has some tasks, lists and
// events.
func (a *App) connect(options ...webdelivery.Option) (*webdelivery.Client, error) {
	if unset := missing(); !a.fake && unset != nil {
		return nil, Misused("set %s; to try a command without a service, add --fake", strings.Join(unset, ", "))
	}
	if !a.fake {
		return webdelivery.NewClientFromEnv(options...)
	}
	srv, err := webdeliverytest.Start(webdeliverytest.WithEvents(1, 1, time.Time{}))
	if err != nil {
		return nil, err
	}
	a.stop = append(a.stop, srv.Close)
	Fill(srv)
	a.Tell("--fake: this is a fake service; nothing real happens")
	return srv.NewClient(webdelivery.SessionAuth(srv.Username, srv.Password), options...)
}

// Fake reports whether the command uses a fake service.
func (a *App) Fake() bool { return a.fake }

// Fill adds tasks and lists to a fake service, and returns the id of the list of addresses.
func Fill(srv *webdeliverytest.Server) (list string) {
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "deploy-property"})
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "deploy-property", Error: &webdeliverytest.TaskError{
		Type: "ConfigError", Message: "origin unknown", Details: []string{"origin.example.com has no address"},
	}})
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "export-logs", Duration: 5 * time.Second})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Type: webdelivery.ListTypeGEO, Name: "embargo", Description: "countries that are not served",
		Entries: []string{"KP", "SY"},
	})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Name: "blocklist", Description: "addresses that are blocked",
		Entries: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.0/25", "2001:db8:bad::/48"},
	})
	return srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Name: "office", Description: "addresses that no rule blocks",
		Entries: []string{"192.0.2.1", "198.51.100.0/24", "2001:db8::/32"},
	})
}

// missing returns the variables that a service needs and that are not set. A file may hold the password.
func missing() (names []string) {
	for _, name := range []string{"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD"} {
		if os.Getenv(name) == "" && (name != "WEBDELIVERY_PASSWORD" || os.Getenv("WEBDELIVERY_PASSWORD_FILE") == "") {
			names = append(names, name)
		}
	}
	return names
}
