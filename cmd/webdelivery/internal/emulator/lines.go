package emulator

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// curlLines returns curl commands for each area of the service. They work for three days, after which the service
// removes their security events.
func curlLines(srv *webdeliverytest.Server, dialect webdeliverytest.Dialect, now time.Time, list string) string {
	base, user := srv.URL+"/"+url.PathEscape(srv.Customer)+"/v1", quote(srv.Username+":"+srv.Password)
	curl := func(path string, flags ...string) string {
		return strings.Join(append(append([]string{"curl -sS -u", user}, flags...), quote(base+path)), " ")
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
	return strings.Join([]string{
		"# Tasks: a page of them, and one",
		curl(tasks + "?count=2"),
		curl(tasks + "/task-1"),
		"\n# Security statistics: the latest events, and the countries that met the WAF most",
		curl("/stats/security/events/data?dimensions=client_ip,rule_id" + span + "&sortby=-event_timestamp_ms&limit=3"),
		curl("/stats/security/waf/topk/country/data?dimensions=client_country_code&metrics=hits" + span),
		"\n# Cache purge, and the transaction of another one",
		post("/cache/purge", purge),
		curl("/transactions/") + transaction,
		"\n# Sessions: one, and a request of another one",
		curl("/sessions", "-X POST"),
		"curl -sS -H " + session + " " + quote(base+tasks+"?count=1"),
		"\n# Network lists: all, the entries of one, and one more entry",
		curl("/config/networklists"),
		curl("/config/networklists/" + list + "/entries"),
		post("/config/networklists/"+list+"/entries", `[{"`+cmp.Or(dialect.EntryKey, "entry")+`":"203.0.113.9"}]`),
	}, "\n") + "\n\n"
}

// exports returns lines for a shell that make the other commands work with the service, whatever was set before.
func exports(srv *webdeliverytest.Server, d webdeliverytest.Dialect) string {
	fields := slices.DeleteFunc([]string{
		"TasksPrefix=" + d.TasksPrefix, "StartTimeParam=" + d.StartTimeParam, "EntryKey=" + d.EntryKey,
		"EntryDeletePath=" + d.EntryDeletePath, "BatchDeletionMethod=" + d.BatchDeletionMethod,
	}, func(field string) bool { return strings.HasSuffix(field, "=") })
	export := func(name, value string) string { return "export WEBDELIVERY_" + name + "=" + quote(value) + "\n" }
	return export("BASE_URL", srv.URL) + export("CUSTOMER", srv.Customer) + export("USERNAME", srv.Username) +
		export("PASSWORD", srv.Password) + export("PASSWORD_FILE", "") + export("AUTH", "basic") +
		export("DIALECT", strings.Join(fields, ","))
}

// quote returns a text as one word of a shell command.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
