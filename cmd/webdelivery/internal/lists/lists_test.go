package lists

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// held are the entries of the list at the beginning of a test, and after those after wanted was applied.
var (
	held  = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.0/24"}
	after = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "203.0.113.9"}
)

// wanted has one entry more and one less than held.
const wanted = "192.0.2.1\n192.0.2.2/32\n192.0.2.3\n192.0.2.4\n203.0.113.9\n"

// service starts a fake service with one list.
func service(t *testing.T, options ...webdeliverytest.Option) (srv *webdeliverytest.Server, list string) {
	t.Helper()
	srv = webdeliverytest.NewServer(t, append([]webdeliverytest.Option{webdeliverytest.WithDeployDuration(0)}, options...)...)
	return srv, srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist", Description: "bots", Entries: held})
}

// file writes a feed or a plan to a file.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ends runs "lists" with this line of arguments, which must end with a code.
func ends(t *testing.T, srv *webdeliverytest.Server, want int, line string) (stdout, stderr string) {
	t.Helper()
	r := clitest.Run(t, srv, Command, "", strings.Fields("lists "+line)...)
	assert.Equal(t, want, r.Code, "%s: %s", line, r.Stderr)
	return r.Stdout, r.Stderr
}

// ls shows all lists; show and find say who added an entry, and when. find says in words what no list covers, and which
// entries it cannot read. A list is found by its name or id.
func TestReading(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	srv, list := service(t, webdeliverytest.WithNow(func() time.Time { return now }))
	geo := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Type: webdelivery.ListTypeGEO, Name: "embargo", Deprecated: true, Entries: []string{"KP"}})
	const lists, entries, added = "id,name,type,description\n", "entry,added_by,creation_timestamp\n", ",operator,2026-11-20T08:00:00Z\n"
	for _, tt := range []struct{ args, want string }{
		{"ls", lists + list + ",blocklist,IP,bots\n" + geo + ",embargo,GEO,(deprecated)\n"},
		{"ls --type geo", lists + geo + ",embargo,GEO,(deprecated)\n"},
		{"show blocklist", entries + strings.Join(held, added) + added},
		{"show " + geo, entries + "KP" + added},
		{"find 192.0.2.1 198.51.100.7 ::ffff:198.51.100.7", "addr,list," + entries + "192.0.2.1,blocklist,192.0.2.1" + added + "198.51.100.7,blocklist,198.51.100.0/24" + added},
	} {
		stdout, stderr := ends(t, srv, cli.Done, tt.args+" -o csv")
		assert.Equal(t, tt.want, stdout)
		assert.Empty(t, stderr)
	}
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "old", Entries: []string{"192.0.2.1-192.0.2.9\x1b"}})
	stdout, stderr := ends(t, srv, cli.Done, "find 203.0.113.9 2001:db8::1 -o json")
	assert.Equal(t, "[]\n", stdout)
	assert.Equal(t, `webdelivery: no list covers 203.0.113.9
webdelivery: no list covers 2001:db8::1
webdelivery: list "old" has "192.0.2.1-192.0.2.9\x1b", which is neither an address nor a range: what it covers is unknown
`, stderr)
	stdout, _ = ends(t, srv, cli.Done, "remove old 192.0.2.1-192.0.2.9\x1b --yes")
	assert.Contains(t, stdout, "\n- \"192.0.2.1-192.0.2.9\\x1b (add cannot add it back)\"\n")
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist"})
	for name, want := range map[string]string{"blocklist": `2 network lists have the name "blocklist": `, "new": "\nwebdelivery: webdelivery lists ls shows the lists; "} {
		_, stderr = ends(t, srv, cli.Failed, "show "+name)
		assert.Contains(t, stderr, want)
	}
}

// Wrong usage ends with 2, says what to type, and changes nothing.
func TestMisuse(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	feed := file(t, "feed.txt", wanted)
	for args, want := range map[string]string{
		"ls --type ASN":                                   `"ASN" is neither IP nor GEO`,
		"find 192.0.2.0/24":                               `"192.0.2.0/24" is not an address, such as`,
		"add blocklist":                                   "ENTRY is missing; type: webdelivery lists add LIST ENTRY...\n",
		"add blocklist 203.0.113.1 nonsense !":            "webdelivery: your entry: \"nonsense\" is neither an IP address, a CIDR range nor an ISO 3166-1 country code\nwebdelivery: your entry: \"!\" is",
		"remove blocklist 192.0.2.1":                      `Add 0 and remove 1 entries of "blocklist"? Add --yes`,
		"clear blocklist":                                 `Remove all entries of "blocklist"? Add --yes`,
		"delete " + list:                                  `Delete the list "blocklist" with its entries for good? Add --yes`,
		"apply blocklist " + feed:                         `Add 1 and remove 1 entries of "blocklist"? Add --yes`,
		"apply blocklist":                                 "want LIST, FEED and their flags, or --plan without them; see webdelivery lists apply --help\n",
		"plan blocklist /nonexistent/feed.txt":            "open /nonexistent/feed.txt: no such file or directory\n",
		"plan blocklist --max-remove -2 " + feed:          "webdelivery: --max-remove: -2 is below -1\n",
		"plan blocklist --add-only --remove-only " + feed: "webdelivery: --remove-only: is set, and so is --add-only\n",
		"plan blocklist " + file(t, "a.csv", "192.0.2.1"): ": set --column, such as --column ip\n",
		"apply --plan " + file(t, "plan.json", "{}"):      "plan.json\" for \"--plan\" flag: ",
		"plan blocklist " + feed + " --never " + file(t, "bad.txt", "office\n"): "bad.txt:1: \"office\" is neither an address nor a range",
	} {
		_, stderr := ends(t, srv, cli.Misuse, args)
		assert.Contains(t, stderr, want)
	}
	assert.Equal(t, held, srv.Entries(list))
}

// A change prints what it did and its tasks. What is so already is no error.
func TestChanges(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	feed, more := file(t, "feed.txt", wanted), slices.Concat(after, []string{"203.0.113.1", "2001:DB8::1"})
	for _, tt := range []struct {
		args, stdin, want string
		after             []string
	}{
		{"apply --yes --wait -o json blocklist " + feed, "", `{"added":1,"removed":1,"size":5,"tasks":["task-1","task-2"]}`, after},
		{"apply blocklist -", wanted, ": nothing to change, 5 entries\nadded 0, removed 0; tasks: none\n", after},
		{"plan blocklist " + feed, "", ": nothing to change, 5 entries\n", after},
		{"add blocklist 203.0.113.1 2001:DB8::1 -o json", "", `{"added":2,"removed":0,"size":7,"tasks":["task-3"]}`, more},
		{"add blocklist -o json", "# new\n203.0.113.1\n\n", `{"added":0,"removed":0,"size":7,"tasks":[]}`, more},
		{"remove blocklist 2001:db8:0::1 192.0.2.99 --yes", "", ": add 0, remove 1, keep 6; 7 entries become 6\n- 2001:DB8::1\nadded 0, removed 1; tasks: task-4\n", more[:6]},
		{"remove blocklist -f - --yes --wait", wanted, "removed 5; tasks: ", []string{"203.0.113.1"}},
		{"clear blocklist --yes --wait -o json", "", `{"tasks":["task-10"]}`, []string{}},
		{"delete blocklist --yes", "", "accepted; tasks: none\n", nil},
	} {
		r := clitest.Run(t, srv, Command, tt.stdin, strings.Fields("lists "+tt.args)...)
		assert.Equal(t, cli.Done, r.Code, r.Stderr)
		assert.Empty(t, r.Stderr)
		if strings.Contains(tt.args, "json") {
			assert.JSONEq(t, tt.want, r.Stdout)
		} else {
			assert.Contains(t, r.Stdout, tt.want)
		}
		assert.ElementsMatch(t, tt.after, srv.Entries(list), tt.args)
	}
}

// On a terminal, everything but add asks, unless there is nothing to change.
func TestTerminal(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	feed := file(t, "feed.txt", wanted)
	for _, tt := range []struct {
		args, answer string
		code         int
		asks         bool
	}{
		{"remove blocklist 192.0.2.1", "n\n", cli.Failed, true},
		{"clear blocklist", "", cli.Failed, true},
		{"delete blocklist", "yeah\n", cli.Failed, true},
		{"apply blocklist " + feed, "y", cli.Done, true},
		{"remove blocklist 203.0.113.9", " YES \r\n", cli.Done, true},
		{"remove blocklist 203.0.113.9", "", cli.Done, false},
		{"add blocklist 203.0.113.9", "", cli.Done, false},
	} {
		app, _, stderr := clitest.App(srv, tt.answer)
		app.InTerminal, app.ErrTerminal = true, true
		assert.Equal(t, tt.code, app.Run(t.Context(), strings.Fields("lists "+tt.args), Command))
		assert.Equal(t, tt.asks, strings.Contains(stderr.String(), "? [y/N] "))
		assert.Equal(t, tt.code == cli.Failed, strings.Contains(stderr.String(), "webdelivery: nothing was changed\n"))
	}
	assert.Equal(t, after, srv.Entries(list))
}

// A change that fails after its first step ends with 3, prints what was changed, and says how to go on. One that fails
// at once ends with 1.
func TestPartlyChanged(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	name := file(t, "feed.txt", wanted)
	remove := srv.Fail(webdeliverytest.FaultRule{Method: http.MethodDelete, Status: http.StatusForbidden})
	stdout, stderr := ends(t, srv, cli.Partly, "apply --yes blocklist "+name)
	assert.Contains(t, stdout, "added 1, removed 0; tasks: task-1\n")
	assert.Contains(t, stderr, "; the service may have changed more than that\nwebdelivery: wait for the tasks, which go on (webdelivery tasks wait task-1), and run the same command again: what is done stays done\n")
	assert.Equal(t, append(held[:5:5], "203.0.113.9"), srv.Entries(list))
	ends(t, srv, cli.Failed, "delete blocklist --yes")
	remove()
	srv.Fail(webdeliverytest.FaultRule{Method: http.MethodPost, Status: http.StatusForbidden})
	stdout, stderr = ends(t, srv, cli.Failed, "add blocklist 203.0.113.10 -o json")
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "webdelivery: nothing was changed: POST ")
	assert.Contains(t, stderr, "\nwebdelivery: use a WEBDELIVERY_USERNAME that has the right to do this\n")
}

// --wait ends when the tasks have ended; one that fails is told. Without it no task is read, and --timeout limits
// nothing. After an interruption the tasks go on.
func TestWait(t *testing.T) {
	t.Parallel()
	srv, list := service(t, webdeliverytest.WithDeployDuration(time.Hour))
	ends(t, srv, cli.Done, "add blocklist 203.0.113.1 --timeout 1ns")
	assert.Zero(t, srv.Count(http.MethodGet, "/tasks/*"))

	for _, line := range []string{"lists add blocklist 203.0.113.2 --wait", "lists clear blocklist --yes --wait"} {
		interrupted, stop := context.WithCancelCause(t.Context())
		remove := srv.Fail(webdeliverytest.FaultRule{Path: "/tasks/*", Handler: func(_ http.ResponseWriter, r *http.Request) {
			stop(errors.New("interrupted")) // the hour is not over
			<-r.Context().Done()
		}})
		app, stdout, stderr := clitest.App(srv, "")
		assert.Equal(t, cli.Partly, app.Run(interrupted, strings.Fields(line), Command))
		task := strings.TrimSpace(stdout.String()[strings.LastIndex(stdout.String(), ": ")+2:])
		assert.Equal(t, "webdelivery: interrupted; the tasks go on\nwebdelivery: to wait for them: webdelivery tasks wait "+task+"\n", stderr.String())
		remove()
	}
	_, stderr := ends(t, srv, cli.Partly, "clear --yes --wait --timeout 1ms "+list)
	assert.Contains(t, stderr, "--timeout 1ms is over")

	failing, _ := service(t)
	failing.FailDeploys(1, webdeliverytest.TaskError{Type: "ConfigError", Message: "no room"})
	_, stderr = ends(t, failing, cli.Partly, "add blocklist 203.0.113.1 --wait")
	assert.Regexp(t, "no room.*\nwebdelivery: the list shows a change that is not in effect: undo it and make it again\n$", stderr)
}

// apply --plan carries out a saved plan without asking, unless the list has changed since or a limit was edited. It
// takes nothing that would change the plan.
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	saved, name := file(t, "plan.json", "an older plan"), file(t, "feed.txt", wanted)
	ends(t, srv, 4, "plan --save "+saved+" blocklist "+name)
	for _, more := range []string{" --max-remove 3", " blocklist " + name} {
		ends(t, srv, cli.Misuse, "apply --plan "+saved+more)
	}
	srv.ChangeEntries(list, []string{"203.0.113.77"}, nil)
	_, stderr := ends(t, srv, cli.Failed, "apply --plan "+saved)
	assert.Contains(t, stderr, "nothing was changed: the list is not as planned")
	assert.Equal(t, append(held[:5:5], "203.0.113.77"), srv.Entries(list))

	ends(t, srv, 4, "plan --max-remove 2 --save "+saved+" blocklist "+name)
	text, err := os.ReadFile(saved)
	require.NoError(t, err)
	_, stderr = ends(t, srv, 5, "apply --plan "+file(t, "edited.json", strings.Replace(string(text), `"max_remove": 2`, `"max_remove": 1`, 1)))
	assert.Contains(t, stderr, "2 of 6 entries would be removed")
	stdout, _ := ends(t, srv, cli.Done, "apply --wait --plan "+saved)
	assert.Contains(t, stdout, "added 1, removed 2; tasks: ")
	assert.Equal(t, after, srv.Entries(list))
}

// plan changes nothing, and ends with 4 if there is something to change. A damaged feed ends with 1, and a plan beyond a
// limit with 5; both change nothing. The error names the place, or the flag and the value that allow the plan, which is
// printed and not saved.
func TestPlans(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	few, more := file(t, "few.txt", "192.0.2.1\n192.0.2.2\n"), file(t, "more.txt", wanted+"198.51.100.0/24\n192.0.0.0/7\n")
	never, saved := file(t, "never.txt", "# office\n 203.0.113.0/28 \n\n2001:db8::1\n"), filepath.Join(t.TempDir(), "plan.json")
	for _, tt := range []struct {
		args         string
		code         int
		stderr, plan string
	}{
		{"apply --yes blocklist " + file(t, "geo.txt", "\nAQ\n"), cli.Failed, "geo.txt:2: \"AQ\" does not belong to a list of type IP", ""},
		{"apply --yes blocklist " + few + " " + file(t, "b.txt", "192.0.2.1\n\nnonsense\ndesired[9]\n"), cli.Failed, "/b.txt:4: \"desired[9]\" is neither", ""},
		{"apply --yes blocklist " + few + " " + file(t, "e.txt", "# nothing\n"), cli.Failed, "/e.txt:2: the feed ends without an entry", ""},
		{"apply --yes blocklist " + few, 5, "webdelivery: --max-remove: 3 of 5 entries would be removed, for example 192.0.2.3, but at most 2 are allowed; set --max-remove to 3 to allow it\n", "add 0, remove 3, keep 2"},
		{"plan -o json --max-remove 1 --save " + saved + " blocklist " + few, 5, "at most 1 are allowed; set", `"max_remove": 1`},
		{"plan --never " + never + " blocklist " + more, 5, "\nwebdelivery: --widest-ipv4: ", "+ 192.0.0.0/7"},
		{"plan --never " + never + " blocklist " + more, 5, "webdelivery: --never: 203.0.113.9 (" + more + ":5) would be added, but it overlaps 203.0.113.0/28", "add 2"},
		{"add blocklist 192.0.0.0/7", 5, "\nwebdelivery: if it is meant, use lists apply with that flag, and --add-only or --remove-only\n", "+ 192.0.0.0/7"},
		{"plan --max-remove -1 blocklist " + few, 4, "webdelivery: nothing was changed\nwebdelivery: to change the list, use apply\n", "\n- 192.0.2.3\n"},
		{"plan --add-only -o json blocklist " + file(t, "new.txt", "203.0.113.9"), 4, "", `"remove": []`},
	} {
		stdout, stderr := ends(t, srv, tt.code, tt.args)
		assert.Contains(t, stderr, tt.stderr)
		assert.Contains(t, stdout, tt.plan)
		assert.Equal(t, tt.code == cli.Failed, stdout == "")
	}
	assert.NoFileExists(t, saved)
	assert.Equal(t, held, srv.Entries(list))
}
