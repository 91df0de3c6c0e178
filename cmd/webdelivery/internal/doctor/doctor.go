// Package doctor has the command that examines a service.
package doctor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const about = `Examine a service before you trust this program or the SDK with it: whether the
settings are right, which rules of the service document it breaks, what it does
where the document leaves something open, which members of a response the
document does not name, and which WEBDELIVERY_DIALECT fits.

It only reads, and creates one session. It also sends up to 12 requests that
must be refused, as nobody. The flags name what else it may change. It sends at
most two purges a second. ^C prints what was found until then.

WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_VISITOR_PASSWORD name a user who
may neither view the configuration nor purge, to see that the service refuses
it. If tasks are neither at /tasks nor at /config/tasks, first set
WEBDELIVERY_DIALECT="TasksPrefix=/...".

The exit code is 1 if a rule differs, too.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Find out where a service differs from its document", Long: about, Args: cobra.NoArgs,
		Example: "  webdelivery doctor --save report.md\n" +
			"  webdelivery doctor --write-list 1234 --purge-uri https://www.example.com/a.js",
	}
	var t conformance.Target
	save := c.Flags().String("save", "", "also write all rules to this `file`, as a Markdown table")
	c.Flags().StringVar(&t.WriteList, "write-list", "", "`id` of an empty list of type IP; entries are added and removed")
	c.Flags().StringVar(&t.FullList, "full-list", "", "`id` of a list of type IP with 50,000 entries; one more is tried")
	c.Flags().StringVar(&t.DeleteList, "delete-list", "", "`id` of a list, which is deleted")
	c.Flags().StringVar(&t.PurgeURI, "purge-uri", "", "`URI` to purge about 45 times, with all that begins with it")
	c.Flags().StringVar(&t.PurgeWildcard, "purge-wildcard", "", "`pattern` with a wildcard domain, to purge as a prefix")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := check(t); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Dir(*save)); err != nil { // before minutes of work are lost
			return cli.Misused("--save: %w", err)
		}
		if app.Fake() {
			fake, err := webdeliverytest.Start(webdeliverytest.WithEvents(0.1, 1, time.Time{}))
			if err != nil {
				return err
			}
			defer fake.Close()
			cli.Fill(fake)
			t.BaseURL, t.Customer = fake.URL, fake.Customer
			t.User = conformance.User{Name: fake.Username, Password: fake.Password}
			app.Tell("--fake: this examines a fake service; nothing real happens")
		} else if err := settings(app, &t); err != nil {
			return err
		}
		return examine(c.Context(), app, t, *save)
	}
	return c
}

// settings reads the service from the environment.
func settings(app *cli.App, t *conformance.Target) error {
	if _, err := app.Connect(); err != nil { // checks the variables, and sends nothing
		return err
	}
	t.BaseURL, t.Customer = os.Getenv("WEBDELIVERY_BASE_URL"), os.Getenv("WEBDELIVERY_CUSTOMER")
	t.User.Name, t.User.Password = os.Getenv("WEBDELIVERY_USERNAME"), os.Getenv("WEBDELIVERY_PASSWORD")
	t.Visitor.Name = os.Getenv("WEBDELIVERY_VISITOR_USERNAME")
	t.Visitor.Password = os.Getenv("WEBDELIVERY_VISITOR_PASSWORD")
	if file := os.Getenv("WEBDELIVERY_PASSWORD_FILE"); file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // G703: who sets the variable chooses the file
		if err != nil {
			return err
		}
		t.User.Password = strings.TrimRight(string(text), "\r\n")
	}
	for field := range strings.SplitSeq(os.Getenv("WEBDELIVERY_DIALECT"), ",") {
		if prefix, found := strings.CutPrefix(strings.TrimSpace(field), "TasksPrefix="); found {
			t.TasksPrefix = prefix
		}
	}
	switch {
	case (t.Visitor.Name == "") != (t.Visitor.Password == ""):
		return cli.Misused("set both WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_VISITOR_PASSWORD, or neither")
	case t.Visitor.Name != "" && t.Visitor.Name == t.User.Name:
		return cli.Misused("WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_USERNAME name the same user; " +
			"the visitor has fewer rights")
	}
	return nil
}

// check returns what is wrong with what may be purged.
func check(t conformance.Target) error {
	if t.PurgeWildcard != "" && (t.PurgeURI == "" || !strings.Contains(t.PurgeWildcard, "*")) {
		return cli.Misused("--purge-wildcard needs a pattern such as *.example.com/app, and --purge-uri")
	}
	for flag, uris := range map[string][]webdelivery.PurgeURI{
		"--purge-uri":      {webdelivery.Prefix(t.PurgeURI), webdelivery.Exact(t.PurgeURI)}, // the rules do both
		"--purge-wildcard": {webdelivery.Prefix(t.PurgeWildcard)},
	} {
		err := webdelivery.PurgeRequest{URIs: uris}.Validate()
		if invalid, ok := errors.AsType[*webdelivery.ValidationError](err); ok && uris[0].URIPattern != "" {
			why, _, _ := strings.Cut(invalid.Reason, ", or use ") // what follows is for purges of the user's own
			return cli.Misused("%s %s", flag, why)
		}
	}
	return nil
}

// lookUp returns an error for a list that the service does not have or that is not what its flag needs: the rules would
// blame the service. Other responses are left to the rules, which say more about them.
func lookUp(ctx context.Context, t conformance.Target) error {
	client, err := webdelivery.NewClient(t.BaseURL, t.Customer, webdelivery.BasicAuth(t.User.Name, t.User.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: t.Transport}))
	if err != nil {
		return err
	}
	lists := map[string]string{"--write-list": t.WriteList, "--full-list": t.FullList, "--delete-list": t.DeleteList}
	for flag, id := range lists {
		if id == "" {
			continue
		}
		list, err := client.NetworkLists.Get(ctx, id)
		switch {
		case errors.Is(err, webdelivery.ErrInvalid), errors.Is(err, webdelivery.ErrNotFound),
			errors.Is(err, webdelivery.ErrBadRequest), errors.Is(err, webdelivery.ErrForbidden): // for one that is hidden
			return cli.Advise(cli.Misused("%s: there is no list with the id %q that the user may read", flag, id),
				`"webdelivery lists ls" shows the ids`)
		case err == nil && flag == "--write-list" && (list.Type == webdelivery.ListTypeGEO || len(list.List) > 0):
			return cli.Misused("%s: the list with the id %q must be empty, and of type IP", flag, id)
		}
	}
	return nil
}
