package conformance_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The service to check, and what the suite may change there. docs/conformance.md explains the flags.
var (
	baseURL       = flag.String("base-url", "", "base URL of the service, without the customer; empty means the fake")
	customer      = flag.String("customer", "", "customer name")
	tasksPrefix   = flag.String("tasks-prefix", "", "path in front of /tasks")
	writeList     = flag.String("write-list", "", "id of an empty list of type IP whose entries may be added and removed")
	fullList      = flag.String("full-list", "", "id of a list with 50,000 entries, to which one more is tried to be added")
	deleteList    = flag.String("delete-list", "", "id of a list that may be deleted")
	purgeURI      = flag.String("purge-uri", "", "object that may be purged, with all whose address begins like its own")
	purgeWildcard = flag.String("purge-wildcard", "", "pattern with a wildcard domain that may be purged as a prefix")
	report        = flag.String("report", "", "file to write the report to, as Markdown")
)

// Without flags, all rules hold on the fake, and each rule that can be tried is tried. With -base-url, the test checks
// that service.
func TestService(t *testing.T) {
	t.Parallel()
	var target conformance.Target
	if *baseURL == "" {
		server, seeded := fake(testserver.Dialect{}, everything)
		target = seeded
		target.BaseURL, target.Transport = server.ListenMemory(), server.Transport()
		t.Cleanup(func() { assert.NoError(t, server.Close()) })
	} else {
		target = conformance.Target{
			BaseURL: *baseURL, Customer: *customer, TasksPrefix: *tasksPrefix,
			User:      conformance.User{Name: os.Getenv("WEBDELIVERY_USERNAME"), Password: os.Getenv("WEBDELIVERY_PASSWORD")},
			Visitor:   conformance.User{Name: os.Getenv("WEBDELIVERY_VISITOR_USERNAME"), Password: os.Getenv("WEBDELIVERY_VISITOR_PASSWORD")},
			WriteList: *writeList, FullList: *fullList, DeleteList: *deleteList, PurgeURI: *purgeURI, PurgeWildcard: *purgeWildcard,
		}
	}
	service, err := conformance.NewService(target)
	require.NoError(t, err)

	var results []conformance.Result
	rules := conformance.Rules()
	for len(rules) > 0 {
		section, count := rules[0].Section, 0
		for count < len(rules) && rules[count].Section == section {
			count++
		}
		of := rules[:count]
		rules = rules[count:]
		t.Run(section, func(t *testing.T) { // not parallel, because they change the same service
			for _, rule := range of {
				t.Run(rule.Text, func(t *testing.T) {
					result := service.Try(t.Context(), rule)
					results = append(results, result)
					tell(t, result)
				})
			}
		})
	}
	t.Log("\n" + conformance.Report(results))
	if *report != "" {
		assert.NoError(t, os.WriteFile(*report, []byte(conformance.Report(results)), 0o600))
	}
	tried := 0
	for _, r := range results {
		if r.Verdict != conformance.NotTried {
			tried++
		}
	}
	assert.True(t, tried > 0 || len(results) == 0, "no rule could be tried")
}

// tell passes or fails the test of one rule. On the fake, a rule that could be tried must be tried.
func tell(t *testing.T, r conformance.Result) {
	t.Helper()
	switch {
	case r.Verdict == conformance.Differs:
		assert.Fail(t, "differs: "+r.Detail, "service-interface section %s: %s", r.Section, r.Text)
	case r.Verdict == conformance.NotTried && *baseURL == "" && r.Unseen == "":
		assert.Fail(t, "not tried: "+r.Detail, "service-interface section %s: %s", r.Section, r.Text)
	case r.Verdict == conformance.NotTried:
		t.Skip(r.Detail)
	case r.Verdict == conformance.Seen:
		t.Log(r.Detail)
	}
}
