package lists

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// held are the entries of the list at the beginning of a test.
var held = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.0/24"}

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

// ends runs "lists" with these arguments, which must end with a code.
func ends(t *testing.T, srv *webdeliverytest.Server, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	r := clitest.Run(t, srv, Command, "", append([]string{"lists"}, args...)...)
	assert.Equal(t, want, r.Code, "%s: %s", args, r.Stderr)
	return r.Stdout, r.Stderr
}

// typed runs "lists" on a terminal where somebody types a line.
func typed(ctx context.Context, srv *webdeliverytest.Server, line string, args ...string) (code int, stdout, stderr string) {
	app, out, err := clitest.App(srv, line)
	app.InTerminal, app.OutTerminal, app.ErrTerminal, app.Width = true, true, true, 80
	code = app.Run(ctx, append([]string{"lists"}, args...), Command)
	return code, out.String(), err.String()
}

// ls shows all lists; show and find say who added an entry, and when.
func TestReading(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	srv, list := service(t, webdeliverytest.WithNow(func() time.Time { return now }))
	geo := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Type: webdelivery.ListTypeGEO, Name: "embargo", Deprecated: true, Entries: []string{"KP"}})
	const (
		lists   = "id,name,type,description\n"
		entries = "entry,added_by,creation_timestamp\n"
		added   = ",operator,2026-11-20T08:00:00Z\n"
	)
	for _, tt := range []struct{ args, want string }{
		{"ls", lists + list + ",blocklist,IP,bots\n" + geo + ",embargo,GEO,(deprecated)\n"},
		{"ls --type geo", lists + geo + ",embargo,GEO,(deprecated)\n"},
		{"show embargo", entries + "KP" + added},
		{"show " + strings.ToUpper(geo), entries + "KP" + added},
		{"find 192.0.2.1 198.51.100.7 ::ffff:198.51.100.7", "addr,list," + entries + "192.0.2.1,blocklist,192.0.2.1" + added + "198.51.100.7,blocklist,198.51.100.0/24" + added},
	} {
		stdout, stderr := ends(t, srv, cli.Done, append(strings.Fields(tt.args), "-o", "csv")...)
		assert.Equal(t, tt.want, stdout)
		assert.Empty(t, stderr)
	}
	stdout, _ := ends(t, srv, cli.Done, "show", "blocklist", "-o", "ndjson")
	assert.Equal(t, len(held), strings.Count(stdout, `"added_by":"operator"`))
}

// find says in words what no list covers, and which entries it cannot read. That is no error.
func TestFindNothing(t *testing.T) {
	t.Parallel()
	srv, _ := service(t)
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "old", Entries: []string{"192.0.2.1-192.0.2.9\x1b"}})
	stdout, stderr := ends(t, srv, cli.Done, "find", "203.0.113.9", "2001:db8::1", "-o", "json")
	assert.Equal(t, "[]\n", stdout)
	assert.Equal(t, `webdelivery: no list covers 203.0.113.9
webdelivery: no list covers 2001:db8::1
webdelivery: list "old" has "192.0.2.1-192.0.2.9\x1b", which is neither an address nor a range: what it covers is unknown
`, stderr)
	stdout, _ = ends(t, srv, cli.Done, "remove", "old", "192.0.2.1-192.0.2.9\x1b", "--yes")
	assert.Contains(t, stdout, "\n- \"192.0.2.1-192.0.2.9\\x1b (add cannot add it back)\"\nadded 0, removed 1; tasks: ")
}

// LIST is an id, or a name that only one of all lists has. The error names the lists.
func TestNames(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	_, stderr := ends(t, srv, cli.Failed, "show", "nobody")
	assert.Equal(t, `webdelivery: 0 lists have the id or name "nobody"; give the id of one of "blocklist" (`+list+")\n", stderr)
	for i := range 150 {
		srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: fmt.Sprintf("list %d", i)})
	}
	first := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "twice"})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "twice", Deprecated: true})
	_, stderr = ends(t, srv, cli.Failed, "show", "twice")
	assert.Contains(t, stderr, `2 lists have the id or name "twice"; give the id of one of "twice" (`+first+`), "twice" (`)
	assert.Contains(t, stderr, ", and 133 more\n")
	ends(t, srv, cli.Done, "show", first)
	ends(t, srv, cli.Done, "show", "list 149")
}

// Wrong usage ends with 2, says what to type, and changes nothing.
func TestMisuse(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	feed := file(t, "feed.txt", wanted)
	for args, want := range map[string]string{
		"ls --type ASN":                                     `"ASN" is neither IP nor GEO`,
		"find 192.0.2.0/24":                                 `"192.0.2.0/24" is not an address, such as`,
		"add blocklist":                                     "ENTRY is missing; type: webdelivery lists add LIST ENTRY...\n",
		"add blocklist 203.0.113.1 nonsense !":              "webdelivery: entry 2: \"nonsense\" is neither an IP address, a CIDR range nor an ISO 3166-1 country code\nwebdelivery: entry 3: \"!\" is",
		"add blocklist 203.0.113.1 -f x":                    "there are arguments and --file",
		"remove blocklist 192.0.2.1":                        `Add 0 and remove 1 entries of "blocklist"? Add --yes`,
		"clear blocklist":                                   `Remove all entries of "blocklist"? Add --yes`,
		"delete " + list:                                    `Delete the list "blocklist" with its entries for good? Add --yes`,
		"apply blocklist " + feed:                           `Add 1 and remove 1 entries of "blocklist"? Add --yes`,
		"apply blocklist":                                   "want LIST, FEED and their flags, or --plan without them; see webdelivery lists apply --help\n",
		"plan blocklist /nonexistent/feed.txt":              "open /nonexistent/feed.txt: no such file or directory\n",
		"plan blocklist --max-remove -2 " + feed:            "webdelivery: --max-remove: -2 is below -1\n",
		"plan blocklist --add-only --remove-only " + feed:   "webdelivery: --remove-only: is set, and so is --add-only\n",
		"plan blocklist " + file(t, "a.csv", "192.0.2.1"):   ": set --column, such as --column ip\n",
		"apply --plan " + file(t, "plan.json", "{}"):        "plan.json\" for \"--plan\" flag: ",
		"apply --plan /nonexistent/plan.json":               "no such file or directory",
		"plan --save /nonexistent/p.json blocklist " + feed: "/nonexistent/p.json cannot be written",
	} {
		_, stderr := ends(t, srv, cli.Misuse, strings.Fields(args)...)
		assert.Contains(t, stderr, want)
	}
	assert.Equal(t, held, srv.Entries(list))
}

// A change prints what it did and its tasks. What is so already is no error.
func TestChanges(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	for _, tt := range []struct {
		args, stdin, want string
		after             []string
	}{
		{"add blocklist 203.0.113.1 2001:DB8::1 -o json", "", `{"added":2,"removed":0,"size":7,"tasks":["task-1"]}`, append(held[:5:5], "203.0.113.1", "2001:DB8::1")},
		{"add blocklist -o json", "# new\n203.0.113.1\n\n", `{"added":0,"removed":0,"size":7,"tasks":[]}`, append(held[:5:5], "203.0.113.1", "2001:DB8::1")},
		{"remove blocklist 2001:db8:0::1 192.0.2.99 --yes", "", ": add 0, remove 1, keep 6; 7 entries become 6\n- 2001:DB8::1\nadded 0, removed 1; tasks: task-2\n", append(held[:5:5], "203.0.113.1")},
		{"remove blocklist 198.51.100.7 --yes --wait", "", ": nothing to change, 6 entries\nadded 0, removed 0; tasks: none\n", append(held[:5:5], "203.0.113.1")},
		{"remove blocklist -f - --yes --wait", strings.Join(held, "\n"), "removed 5; tasks: ", []string{"203.0.113.1"}},
		{"clear blocklist --yes --wait -o json", "", `{"tasks":["task-8"]}`, []string{}},
		{"delete blocklist --yes", "", "accepted; tasks: none\n", nil},
	} {
		r := clitest.Run(t, srv, Command, tt.stdin, append([]string{"lists"}, strings.Fields(tt.args)...)...)
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

// On a terminal, everything but add asks. Colours are only there, and not with NO_COLOR.
func TestTerminal(t *testing.T) {
	srv, list := service(t)
	t.Setenv("NO_COLOR", "")
	for _, args := range []string{"remove blocklist 192.0.2.1", "clear blocklist", "delete blocklist", "apply blocklist " + file(t, "feed.txt", wanted)} {
		code, _, stderr := typed(t.Context(), srv, "n\n", strings.Fields(args)...)
		assert.Equal(t, cli.Failed, code)
		assert.Contains(t, stderr, "? [y/N] ")
		assert.Contains(t, stderr, "webdelivery: nothing was changed\n")
		assert.Equal(t, held, srv.Entries(list))
	}
	feed := file(t, "feed.txt", wanted)
	code, stdout, _ := typed(t.Context(), srv, "y\n", "apply", "blocklist", feed)
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, stdout, "\n\x1b[32m+ 203.0.113.9\x1b[0m\n\x1b[31m- 198.51.100.0/24\x1b[0m\n")
	code, stdout, stderr := typed(t.Context(), srv, "", "apply", "blocklist", feed)
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, stdout, "nothing to change")
	assert.NotContains(t, stderr, "[y/N]", "there is nothing to ask")

	t.Setenv("NO_COLOR", "1")
	_, stdout, _ = typed(t.Context(), srv, "", "add", "blocklist", "203.0.113.10")
	assert.NotContains(t, stdout, "\x1b")
	assert.Contains(t, srv.Entries(list), "203.0.113.10")

	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "office", Description: "addresses that no rule of ours blocks"})
	_, stdout, _ = typed(t.Context(), srv, "", "ls")
	assert.Contains(t, stdout, list+"  blocklist", "the id is whole")
	assert.Contains(t, stdout, "…\n")
}

// A change that fails after its first step ends with 3, prints what was changed, and says how to go on. One that fails
// at once ends with 1.
func TestPartlyChanged(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	name := file(t, "feed.txt", wanted)
	remove := srv.Fail(webdeliverytest.FaultRule{Method: http.MethodDelete, Status: http.StatusForbidden})
	stdout, stderr := ends(t, srv, cli.Partly, "apply", "blocklist", name, "--yes")
	assert.Contains(t, stdout, "added 1, removed 0; tasks: task-1\n")
	assert.Contains(t, stderr, "when the tasks have ended, run the same command again: what is done stays done\n")
	assert.Equal(t, append(held[:5:5], "203.0.113.9"), srv.Entries(list))
	ends(t, srv, cli.Failed, "remove", "blocklist", "192.0.2.1", "--yes")
	ends(t, srv, cli.Failed, "delete", "blocklist", "--yes")
	remove()

	many := make([]string, 5001)
	for i := range many {
		many[i] = fmt.Sprintf("2001:db8::%x", i+1)
	}
	refuse := webdeliverytest.FaultRule{Method: http.MethodPost, Status: http.StatusForbidden, Skip: 1}
	remove = srv.Fail(refuse)
	stdout, _ = ends(t, srv, cli.Partly, "add", "blocklist", "-f", file(t, "many.txt", strings.Join(many, "\n")), "-o", "json")
	assert.JSONEq(t, `{"added":5000,"removed":0,"size":0,"tasks":["task-2"]}`, stdout)
	remove()
	refuse.Skip = 0
	srv.Fail(refuse)
	stdout, stderr = ends(t, srv, cli.Failed, "add", "blocklist", "203.0.113.10", "-o", "json")
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "webdelivery: nothing was changed: ")
	assert.Contains(t, stderr, "\nwebdelivery: use a WEBDELIVERY_USERNAME that has the right to do this\n")
}

// --wait ends when the tasks have ended; one that fails is told. Without it no task is read. After an interruption the
// tasks go on.
func TestWait(t *testing.T) {
	t.Parallel()
	srv, list := service(t, webdeliverytest.WithDeployDuration(time.Hour))
	ends(t, srv, cli.Done, "add", "blocklist", "203.0.113.1")
	assert.Zero(t, srv.Count(http.MethodGet, "/tasks/*"))

	for _, args := range [][]string{{"add", "blocklist", "203.0.113.2", "--wait"}, {"clear", "blocklist", "--yes", "--wait"}} {
		interrupted, stop := context.WithCancelCause(t.Context())
		remove := srv.Fail(webdeliverytest.FaultRule{Path: "/tasks/*", Handler: func(_ http.ResponseWriter, r *http.Request) {
			stop(errors.New("interrupted")) // the hour is not over
			<-r.Context().Done()
		}})
		app, stdout, stderr := clitest.App(srv, "")
		assert.Equal(t, cli.Partly, app.Run(interrupted, append([]string{"lists"}, args...), Command))
		task := strings.TrimSpace(stdout.String()[strings.LastIndex(stdout.String(), ": ")+2:])
		assert.Equal(t, "webdelivery: interrupted; the tasks go on\nwebdelivery: to wait for them: webdelivery tasks wait "+task+"\n", stderr.String())
		remove()
	}
	_, stderr := ends(t, srv, cli.Partly, "clear", list, "--yes", "--wait", "--timeout", "1ms")
	assert.Contains(t, stderr, "--timeout 1ms is over")

	failing, _ := service(t)
	failing.FailDeploys(1, webdeliverytest.TaskError{Type: "ConfigError", Message: "no room"})
	_, stderr = ends(t, failing, cli.Partly, "add", "blocklist", "203.0.113.1", "--wait")
	assert.Contains(t, stderr, "no room")
	assert.Contains(t, stderr, "\nwebdelivery: the list shows a change that is not in effect: undo it and make it again\n")
}

// plan changes nothing, and ends with 4 if there is something to change. When the plan is applied, the list equals the
// feeds, and another plan is empty.
func TestPlanThenApplyThenNothing(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	name := file(t, "feed.txt", wanted)
	stdout, stderr := ends(t, srv, 4, "plan", "blocklist", name)
	assert.Contains(t, stdout, "\n+ 203.0.113.9\n- 198.51.100.0/24\n")
	assert.Equal(t, "webdelivery: nothing was changed\nwebdelivery: to change the list, use apply\n", stderr)
	stdout, _ = ends(t, srv, 4, "plan", "blocklist", name, "--add-only", "-o", "json")
	var plan webdelivery.Plan
	require.NoError(t, json.Unmarshal([]byte(stdout), &plan))
	assert.Equal(t, []string{"203.0.113.9"}, plan.Add)
	assert.Empty(t, plan.Remove)
	assert.Equal(t, held, srv.Entries(list))

	stdout, _ = ends(t, srv, cli.Done, "apply", "--yes", "--wait", list, name, "-o", "json")
	assert.JSONEq(t, `{"added":1,"removed":1,"size":5,"tasks":["task-1","task-2"]}`, stdout)
	assert.Equal(t, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "203.0.113.9"}, srv.Entries(list))

	stdout, stderr = ends(t, srv, cli.Done, "plan", "blocklist", name)
	assert.Contains(t, stdout, "nothing to change, 5 entries")
	assert.Empty(t, stderr)
}

// apply --plan carries out a saved plan without asking, unless the list has changed since or a limit was edited. It
// takes nothing that would change the plan.
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	saved, name := file(t, "plan.json", "an older plan"), file(t, "feed.txt", wanted)
	ends(t, srv, 4, "plan", "blocklist", name, "--save", saved)
	for _, args := range [][]string{{"--max-remove", "3"}, {"blocklist", name}} {
		_, stderr := ends(t, srv, cli.Misuse, append(args, "apply", "--plan", saved)...)
		assert.Contains(t, stderr, "webdelivery lists")
	}
	srv.ChangeEntries(list, []string{"203.0.113.77"}, nil)
	_, stderr := ends(t, srv, cli.Failed, "apply", "--plan", saved)
	assert.Contains(t, stderr, "nothing was changed: webdelivery: the list is not as planned")
	assert.Equal(t, append(held[:5:5], "203.0.113.77"), srv.Entries(list))

	ends(t, srv, 4, "plan", "blocklist", name, "--save", saved, "--max-remove", "2")
	text, err := os.ReadFile(saved)
	require.NoError(t, err)
	edited := file(t, "edited.json", strings.Replace(string(text), `"max_remove": 2`, `"max_remove": 1`, 1))
	_, stderr = ends(t, srv, 5, "apply", "--plan", edited)
	assert.Contains(t, stderr, "2 of 6 entries would be removed")
	stdout, _ := ends(t, srv, cli.Done, "apply", "--plan", saved, "--wait")
	assert.Contains(t, stdout, "added 1, removed 2; tasks: ")
	assert.Equal(t, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "203.0.113.9"}, srv.Entries(list))
}

// A damaged feed, or one of another type, changes nothing. The error names the place.
func TestDamagedFeeds(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	good := file(t, "feed.txt", wanted)
	for want, feeds := range map[string][]string{
		"geo.txt:2: \"AQ\" does not belong to a list of type IP": {file(t, "geo.txt", "\nAQ\n")},
		"/b.txt:3: \"nonsense\" is neither":                      {good, file(t, "b.txt", "192.0.2.1\n\nnonsense\n!\n")},
		"/d.txt:4: \"desired[9]\" is neither":                    {file(t, "d.txt", "192.0.2.1\n\nnonsense\ndesired[9]\n")},
		"/e.txt:2: the feed ends without an entry":               {good, file(t, "e.txt", "# nothing\n")},
		"/f.json:1: ": {file(t, "f.json", "{")},
	} {
		stdout, stderr := ends(t, srv, cli.Failed, append([]string{"apply", "--yes", "blocklist"}, feeds...)...)
		assert.Contains(t, stderr, want)
		assert.Empty(t, stdout)
	}
	assert.Equal(t, held, srv.Entries(list))
}

// A plan beyond a limit ends with 5, is printed and not saved, and changes nothing. The error names the flag and the
// value that allow it.
func TestLimits(t *testing.T) {
	t.Parallel()
	srv, list := service(t)
	few, more := file(t, "few.txt", "192.0.2.1\n192.0.2.2\n"), file(t, "more.txt", wanted+"198.51.100.0/24\n192.0.0.0/7\n")
	never, saved := file(t, "never.txt", "# office\n 203.0.113.0/28 \n\n2001:db8::1\n"), filepath.Join(t.TempDir(), "plan.json")
	for _, tt := range []struct {
		want, plan string
		args       []string
	}{
		{
			"webdelivery: --max-remove: 3 of 5 entries would be removed, for example 192.0.2.3, but at most 2 are allowed; set --max-remove to 3 to allow it\n",
			"add 0, remove 3, keep 2",
			[]string{"apply", "--yes", "blocklist", few},
		},
		{"at most 1 are allowed; set", `"max_remove": 1`, []string{"plan", "-o", "json", "--max-remove", "1", "blocklist", few, "--save", saved}},
		{"\nwebdelivery: --widest-ipv4: ", "+ 192.0.0.0/7", []string{"plan", "blocklist", more, "--never", never}},
		{"webdelivery: --never: 203.0.113.9 (" + more + ":5) would be added, but it overlaps 203.0.113.0/28", "add 2", []string{"plan", "blocklist", more, "--never", never}},
	} {
		stdout, stderr := ends(t, srv, 5, tt.args...)
		assert.Contains(t, stderr, tt.want)
		assert.Contains(t, stdout, tt.plan)
	}
	assert.NoFileExists(t, saved)
	assert.Equal(t, held, srv.Entries(list))
	for _, limit := range []string{"3", "-1"} {
		ends(t, srv, 4, "plan", "--max-remove", limit, "blocklist", few)
	}
	_, stderr := ends(t, srv, cli.Misuse, "plan", "blocklist", few, "--never", file(t, "bad.txt", "office\n"))
	assert.Contains(t, stderr, "bad.txt:1: \"office\" is neither an address nor a range")
}
