package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// fill adds tasks and lists to the service, and returns the id of the list of addresses.
func fill(srv *webdeliverytest.Server) (list string) {
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "deploy-property"})
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "deploy-property", Error: &webdeliverytest.TaskError{
		Type: "ConfigError", Message: "origin unknown", Details: []string{"origin.example.com has no address"},
	}})
	srv.AddTask(webdeliverytest.TaskSpec{Operation: "export-logs", Duration: 5 * time.Second})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Type: webdelivery.ListTypeGEO, Name: "embargo", Description: "countries that are not served",
		Entries: []string{"KP", "SY"},
	})
	return srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		Name: "office", Description: "addresses that no rule blocks",
		Entries: []string{"192.0.2.1", "198.51.100.0/24", "2001:db8::/32"},
	})
}

// printLines prints curl commands for each area of the service. They work for three days, after which the service
// removes their security events.
func printLines(out io.Writer, srv *webdeliverytest.Server, dialect webdeliverytest.Dialect, now time.Time, list string) {
	base := srv.URL + "/" + url.PathEscape(srv.Customer) + "/v1"
	login := "curl -sS -u " + quote(srv.Username+":"+srv.Password)
	curl := func(path string, flags ...string) string {
		return strings.Join(append(append([]string{login}, flags...), quote(base+path)), " ")
	}
	post := func(path, body string, flags ...string) string {
		return curl(path, append(flags, "-H 'Content-Type: application/json'", "-d "+quote(body))...)
	}
	tasks := dialect.TasksPrefix + "/tasks"
	const layout = "2006-01-02T15:04:05"
	span := "&" + cmp.Or(dialect.StartTimeParam, "starttime") + "=" + now.UTC().Add(-time.Hour).Format(layout) +
		"&endtime=" + now.UTC().Format(layout)
	purge := `{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/app.css"}]}}`
	// The id is in the headers or the body of the response, depending on the dialect.
	transaction := `"$(` + post("/cache/purge", purge, "-i") + ` | sed -n 's|.*/transactions/\([0-9]*\).*|\1|p' | head -n 1)"`
	session := `"Cookie: authtoken=$(` + curl("/sessions", "-i", "-X POST") + ` | sed -n 's|.*\([A-Z2-7]\{26\}\).*|\1|p' | head -n 1)"`

	for _, area := range []struct {
		name  string
		lines []string
	}{
		{"Tasks: a page of them, and one", []string{
			curl(tasks + "?count=2"),
			curl(tasks + "/task-1"),
		}},
		{"Security statistics: the latest events, and the countries that met the WAF most often", []string{
			curl("/stats/security/events/data?dimensions=client_ip,rule_id" + span + "&sortby=-event_timestamp_ms&limit=3"),
			curl("/stats/security/waf/topk/country/data?dimensions=client_country_code&metrics=hits" + span),
		}},
		{"Cache purge, and the transaction of another one", []string{
			post("/cache/purge", purge),
			curl("/transactions/") + transaction,
		}},
		{"Sessions: one, and a request of another one", []string{
			curl("/sessions", "-X POST"),
			"curl -sS -H " + session + " " + quote(base+tasks+"?count=1"),
		}},
		{"Network lists: all, the entries of one, and one more entry", []string{
			curl("/config/networklists"),
			curl("/config/networklists/" + list + "/entries"),
			post("/config/networklists/"+list+"/entries", `[{"`+cmp.Or(dialect.EntryKey, "entry")+`":"203.0.113.9"}]`),
		}},
	} {
		fmt.Fprintf(out, "# %s\n%s\n\n", area.name, strings.Join(area.lines, "\n"))
	}
}

// exports returns lines for a shell that make the other example programs work with the service.
func exports(srv *webdeliverytest.Server) string {
	var lines strings.Builder
	for _, variable := range [][2]string{
		{"BASE_URL", srv.URL}, {"CUSTOMER", srv.Customer}, {"USERNAME", srv.Username}, {"PASSWORD", srv.Password}, {"AUTH", "basic"},
	} {
		fmt.Fprintf(&lines, "export WEBDELIVERY_%s=%s\n", variable[0], quote(variable[1]))
	}
	return lines.String()
}

// quote returns a text as one word of a shell command.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
