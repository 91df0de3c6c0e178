package conformance_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
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
	sessions, refused := 0, map[string]int{}
	for _, r := range server.Requests() {
		user, _, basic := (&http.Request{Header: r.Header}).BasicAuth()
		switch {
		case basic && user != target.User.Name:
			refused[user]++
		case !basic:
			if cookie := r.Header.Get("Cookie"); cookie == "" || cookie == "authtoken=conformance-absent" {
				refused[cookie]++
			}
		}
		if r.Method == http.MethodPost && r.Path == "/acme/v1/sessions" {
			sessions++
			continue
		}
		assert.Contains(t, []string{http.MethodGet, http.MethodHead}, r.Method, r.Path)
	}
	assert.Equal(t, 2, sessions, "one by the user, one by a stranger")
	assert.Equal(t, 1, server.Logins())
	page, err := os.ReadFile("../../docs/internals/conformance.md")
	require.NoError(t, err)
	nobody, absent, none := refused["conformance-nobody"], refused["authtoken=conformance-absent"], refused[""]
	assert.Len(t, refused, 3)
	assert.Contains(t, strings.Join(strings.Fields(string(page)), " "), fmt.Sprintf("up to %d requests, all but one of them GET, that "+
		"must be refused: %d as the user `conformance-nobody` with a made-up password, %d with the session `conformance-absent`, "+
		"%d without credentials", nobody+absent+none, nobody, absent, none))
}

// The suite leaves the WriteList as it found it, and does not change a WriteList that has entries.
func TestWrittenListIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, little)
	try(t, target, server, conformance.Rules())
	assert.Empty(t, server.Entries(target.WriteList))

	server, target = fake(testserver.Dialect{}, little)
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
	var results []conformance.Result
	for _, r := range all {
		results = append(results, r)
	}
	report := conformance.Report(results, nil)
	assert.Contains(t, report, "returned 302")
	require.NotEmpty(t, tokens)
	encoded := base64.StdEncoding.EncodeToString([]byte(target.User.Name + ":" + target.User.Password))
	for _, secret := range append(tokens, target.User.Password, target.Visitor.Password, encoded) {
		known := secret == "conformance-absent" // a value of the suite itself, which is no secret
		assert.False(t, strings.Contains(report, secret) && !known, "%q is in the report", secret)
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
	target.BaseURL, target.Transport = "http://127.0.0.1", direct{answer("/(tasks|transactions/.*)", func(b object) {
		eachItem("more", object{"id": 1})(b)
		eachItem("error_info", object{"message": "no", "extra": 1})(b)
		if of, ok := b["transaction_response"].(object); ok {
			of["code"], of["begin_ts"] = 1, 2 // code is a member of the object around it
		}
	}).wrap(server)}
	service, err := conformance.NewService(target)
	require.NoError(t, err)
	for _, rule := range conformance.Rules() {
		if rule.Section == "2.1" || rule.Section == "3" {
			service.Try(t.Context(), rule)
		}
	}
	assert.Equal(t, []string{`Task: "more"`, `ErrorInfo: "extra"`, `Transaction: "transaction_response.code"`}, service.Unnamed())
}

// All rules hold on the fake, and each rule that can be tried is tried.
func TestService(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, everything)
	target.BaseURL, target.Transport = server.ListenMemory(), server.Transport()
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	service, err := conformance.NewService(target)
	require.NoError(t, err)

	for _, rule := range conformance.Rules() { //nolint:paralleltest // the rules change the same service
		t.Run(rule.Section+"/"+rule.Text, func(t *testing.T) {
			tell(t, service.Try(t.Context(), rule))
		})
	}
}

// tell passes or fails the test of one rule. On the fake, a rule that could be tried must be tried.
func tell(t *testing.T, r conformance.Result) {
	t.Helper()
	switch {
	case r.Verdict == conformance.Differs:
		assert.Fail(t, "differs: "+r.Detail, "service-interface section %s: %s", r.Section, r.Text)
	case r.Verdict == conformance.NotTried && r.Unseen == "":
		assert.Fail(t, "not tried: "+r.Detail, "service-interface section %s: %s", r.Section, r.Text)
	case r.Verdict == conformance.NotTried:
		t.Skip(r.Detail)
	case r.Verdict == conformance.Seen:
		t.Log(r.Detail)
	}
}
