package conformance_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// If the target names nothing to change, the suite only reads, and creates one session.
func TestNothingIsChangedUnlessNamed(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, little)
	try(t, conformance.Target{
		Customer: target.Customer, User: target.User, Now: target.Now, Wait: target.Wait,
	}, server, conformance.Rules())
	as := map[string]int{} // requests by user or cookie
	for _, r := range server.Requests() {
		user, _, _ := (&http.Request{Header: r.Header}).BasicAuth()
		as[user+r.Header.Get("Cookie")]++
		if r.Path != "/acme/v1/sessions" {
			assert.Contains(t, []string{http.MethodGet, http.MethodHead}, r.Method, r.Path)
		}
	}
	assert.Equal(t, 2, server.Count(http.MethodPost, "/sessions"), "one by the user, one by a stranger")
	assert.Equal(t, 1, server.Logins())
	page, err := os.ReadFile("../../docs/internals/conformance.md")
	require.NoError(t, err)
	nobody, absent, none := as["conformance-nobody"], as["authtoken=conformance-absent"], as[""]
	assert.Len(t, as, 5, "these, the user and the session")
	assert.Contains(t, strings.Join(strings.Fields(string(page)), " "), fmt.Sprintf("up to %d requests, all but one of them GET, that "+
		"must be refused: %d as the user `conformance-nobody` with a made-up password, %d with the session `conformance-absent`, "+
		"%d without credentials", nobody+absent+none, nobody, absent, none))
}

// The suite does not change a WriteList that has entries.
func TestListWithEntriesIsNotWritten(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, little)
	server.ChangeEntries(target.WriteList, []string{"192.0.2.99"}, nil)
	_, all := try(t, target, server, quickRules())
	assert.Equal(t, []string{"192.0.2.99"}, server.Entries(target.WriteList))
	assert.Equal(t, conformance.NotTried, all["4.6 POST of entries adds any addresses and CIDR ranges"].Verdict)
	assert.Zero(t, server.Count(http.MethodPost, "/config/**"))
}

// The suite sends at most two purge requests per second (section 8).
func TestPurgeRateIsKept(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, little)
	target.ExceedPurgeRate = false
	try(t, target, server, quickRules())
	var times []time.Time
	for _, r := range server.Requests() {
		if r.Path == "/acme/v1/cache/purge" {
			times = append(times, r.Time)
			assert.NotContains(t, []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, r.Status)
		}
	}
	require.Greater(t, len(times), 30)
	for i := range times[2:] {
		assert.GreaterOrEqual(t, times[i+2].Sub(times[i]), time.Second)
	}
}

// No password, session or authentication header gets into the report, and no request goes to another origin.
func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{SessionReply: "token"}, little)
	var tokens, foreign []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, token, found := strings.Cut(r.Header.Get("Cookie"), "="); found {
			tokens = append(tokens, token)
		}
		if r.Host != "127.0.0.1" {
			foreign = append(foreign, r.Host)
		}
		if strings.HasSuffix(r.URL.Path, "/tasks") { // a redirect that must not be followed
			http.Redirect(w, r, "http://192.0.2.1/elsewhere", http.StatusFound)
			return
		}
		server.ServeHTTP(w, r)
	})
	_, all := try(t, target, handler, quickRules())
	assert.Empty(t, foreign)
	report := conformance.Report(slices.Collect(maps.Values(all)), nil)
	assert.Contains(t, report, "returned 302")
	require.NotEmpty(t, tokens)
	encoded := base64.StdEncoding.EncodeToString([]byte(target.User.Name + ":" + target.User.Password))
	tokens = slices.DeleteFunc(tokens, func(s string) bool { return s == "conformance-absent" }) // the suite's own
	for _, secret := range append(tokens, target.User.Password, target.Visitor.Password, encoded) {
		assert.NotContains(t, report, secret)
	}
}

// The suite sends credentials only over TLS or to this machine. Errors do not show an invalid address.
func TestBaseURL(t *testing.T) {
	t.Parallel()
	for address, usable := range map[string]bool{
		"https://api.example.com": true, "https://api.example.com/root/": true, "http://127.0.0.1:8080": true, "http://[::1]": true,
		"http://localhost": true, "http://api.example.com": false, "ftp://api.example.com": false, "api.example.com": false, "": false,
		"https://alice:secret@api.example.com": false, "https://api.example.com/?a=secret": false, "https://a b/secret": false,
	} {
		_, err := conformance.NewService(conformance.Target{
			BaseURL: address, Customer: "acme", User: conformance.User{Name: "alice", Password: "x"},
		})
		assert.Equal(t, usable, err == nil, "%s: %v", address, err)
		if err != nil {
			assert.NotContains(t, err.Error(), "secret")
		}
	}
	_, err := conformance.NewService(conformance.Target{BaseURL: "https://api.example.com"})
	assert.Error(t, err)
}

// The report is a table that no text of the service breaks.
func TestReport(t *testing.T) {
	t.Parallel()
	rule := conformance.Rule{Section: "2.1", Text: "a rule", Point: 4}
	assert.Equal(t, "1 rules: 0 hold, 1 differ, 0 left open, 0 not tried\n\n| Section | Rule | Open point | Result | Detail |\n"+
		"|---|---|---|---|---|\n| 2.1 | a rule | 4 | differs | a\\|b &lt;c> d |\n\nMembers that the document does not name:\n\n- Task: x\\|y\n",
		conformance.Report([]conformance.Result{{Rule: rule, Verdict: conformance.Differs, Detail: "a|b <c>\nd"}}, []string{"Task: x|y"}))
}

// The members that the document does not name are told by type, also those of an object within.
func TestUnnamedMembers(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, little)
	handler := answer("/tasks", set("items.more", object{"id": 1}))(server)
	handler = answer("/tasks", set("items.error_info", object{"message": "no", "extra": 1}))(handler)
	handler = answer(transaction, set("transaction_response.code", 1))(handler) // code is a member of the object around it
	target.BaseURL, target.Transport = "http://127.0.0.1", direct{handler}
	service, err := conformance.NewService(target)
	require.NoError(t, err)
	for _, rule := range conformance.Rules() {
		if rule.Section == "2.1" || rule.Section == "3" {
			service.Try(t.Context(), rule)
		}
	}
	assert.Equal(t, []string{`Task: "more"`, `ErrorInfo: "extra"`, `Transaction: "transaction_response.code"`}, service.Unnamed())
}

// All rules hold on the fake, each rule that can be tried is tried, and the WriteList is left as it was.
func TestService(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, everything)
	_, all := try(t, target, server, conformance.Rules())
	assert.Len(t, all, len(conformance.Rules()), "no two rules are the same")
	for rule, r := range all {
		assert.NotEqual(t, conformance.Differs, r.Verdict, "%s: %s", rule, r.Detail)
		assert.Equal(t, r.Unseen != "", r.Verdict == conformance.NotTried, "%s: %s", rule, r.Detail)
	}
	assert.Empty(t, server.Entries(target.WriteList))
}
