package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// held are the entries of the list at the beginning of a test.
var held = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.0/24"}

// wanted has one entry more and one less than held.
const wanted = "192.0.2.1\n192.0.2.2/32\n192.0.2.3\n192.0.2.4\n203.0.113.9\n"

// service starts a fake service with one list, and sets the environment for it.
func service(t *testing.T, options ...webdeliverytest.Option) (srv *webdeliverytest.Server, list string) {
	t.Helper()
	srv = webdeliverytest.NewServer(t, append([]webdeliverytest.Option{webdeliverytest.WithDeployDuration(0)}, options...)...)
	programtest.UseService(t, srv)
	return srv, srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist", Entries: held})
}

// file writes a feed or a plan to a file.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ends runs the program, which must end with a code.
func ends(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := with(t.Context(), program.Streams{In: strings.NewReader("")}, args...)
	assert.Equal(t, want, code, stderr)
	return stdout, stderr
}

func with(ctx context.Context, s program.Streams, args ...string) (code int, stdout, stderr string) {
	return programtest.Run("blocklist", s, func(s program.Streams) error { return run(ctx, args, s) })
}

// Without settings and arguments the program uses a sample feed and a fake service.
func TestOnItsOwn(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	stdout, stderr := ends(t, 4)
	assert.Contains(t, stdout, "add 2, remove 1, keep 6")
	assert.Contains(t, stdout, "\n+ 192.0.2.66\n+ 203.0.113.0/24\n- 198.51.100.200\n")
	assert.Contains(t, stderr, "fake service")
	assert.Contains(t, stderr, "-apply")

	stdout, _ = ends(t, program.Done, "-apply", "-wait")
	assert.Contains(t, stdout, "added 2, removed 1\n")
}

// A plan changes nothing. When it is applied, the list equals the feed, and another plan is empty.
func TestPlanThenApplyThenNothing(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, list := service(t)
	name := file(t, "feed.txt", wanted)
	stdout, _ := ends(t, 4, "blocklist", name)
	assert.Contains(t, stdout, "\n+ 203.0.113.9\n- 198.51.100.0/24\n")
	assert.Equal(t, held, srv.Entries(list))

	ends(t, program.Done, "-apply", "-wait", list, name)
	after := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "203.0.113.9"}
	assert.Equal(t, after, srv.Entries(list))

	stdout, stderr := ends(t, program.Done, "blocklist", name)
	assert.Contains(t, stdout, "nothing to change, 5 entries")
	assert.Empty(t, stderr)
}

// -apply-plan applies the saved plan, unless the list has changed since.
func TestStoredPlan(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, list := service(t)
	saved := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(saved, []byte("an older plan that everybody may read"), 0o644))
	ends(t, 4, "-save-plan", saved, "blocklist", file(t, "feed.txt", wanted))
	info, err := os.Stat(saved)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	beside, err := os.ReadDir(filepath.Dir(saved))
	require.NoError(t, err)
	assert.Len(t, beside, 1, "nothing but the plan is left")

	srv.ChangeEntries(list, []string{"203.0.113.77"}, nil)
	_, stderr := ends(t, program.Failed, "-apply-plan", saved)
	assert.Contains(t, stderr, "nothing was changed; plan again")
	assert.Equal(t, append(held[:5:5], "203.0.113.77"), srv.Entries(list))

	ends(t, 4, "-save-plan", saved, "-max-remove", "2", "blocklist", file(t, "feed.txt", wanted))
	stdout, _ := ends(t, program.Done, "-apply-plan", saved, "-wait")
	assert.Contains(t, stdout, "added 1, removed 2\n")
	assert.Equal(t, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "203.0.113.9"}, srv.Entries(list))

	for _, text := range []string{"{}", "[", "null"} {
		stdout, stderr = ends(t, program.Failed, "-apply-plan", file(t, "plan.json", text))
		assert.Contains(t, stderr, "plan.json cannot be applied: ")
		assert.Empty(t, stdout)
	}
	_, stderr = ends(t, program.Failed, "-save-plan", "/nonexistent/plan.json", "blocklist", file(t, "feed.txt", wanted))
	assert.Contains(t, stderr, "blocklist: /nonexistent/plan.json cannot be written: no such file or directory\nblocklist: name a file in")
}

// -json prints the plan, and then the result.
func TestJSON(t *testing.T) { //nolint:paralleltest // the environment is the process's
	_, list := service(t)
	stdout, _ := ends(t, program.Done, "-json", "-apply", "blocklist", file(t, "feed.txt", wanted))
	decoder := json.NewDecoder(strings.NewReader(stdout))
	var plan webdelivery.Plan
	require.NoError(t, decoder.Decode(&plan))
	assert.Equal(t, list, plan.ListID)
	assert.Equal(t, []string{"203.0.113.9"}, plan.Add)
	require.Len(t, plan.Remove, 1)
	assert.Equal(t, "198.51.100.0/24", plan.Remove[0].Entry)
	var result webdelivery.ApplyResult
	require.NoError(t, decoder.Decode(&result))
	assert.Equal(t, [3]int{1, 1, 5}, [3]int{result.Added, result.Removed, result.Size})
	assert.False(t, decoder.More())
}

// A change that fails after its first step is reported as done in part. One that fails at once is not.
func TestApplyFails(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, list := service(t)
	name := file(t, "feed.txt", wanted)
	remove := srv.Fail(webdeliverytest.FaultRule{Method: http.MethodDelete, Status: http.StatusForbidden})
	stdout, stderr := ends(t, program.Partly, "-apply", "blocklist", name)
	assert.Contains(t, stdout, "added 1, removed 0\n")
	assert.Contains(t, stderr, "not everything was changed; plan and apply again")
	assert.Equal(t, append(held[:5:5], "203.0.113.9"), srv.Entries(list))
	remove()

	srv.Fail(webdeliverytest.FaultRule{Method: http.MethodPost, Status: http.StatusForbidden})
	ends(t, program.Failed, "-apply", "blocklist", file(t, "feed.txt", wanted+"203.0.113.10"))
	assert.Equal(t, append(held[:5:5], "203.0.113.9"), srv.Entries(list))
}

// -wait ends when the list is deployed. Without it the program does not read the task.
func TestWait(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, _ := service(t, webdeliverytest.WithDeployDuration(time.Hour))
	interrupted, stop := context.WithCancel(t.Context())
	defer stop()
	srv.Fail(webdeliverytest.FaultRule{Path: "/tasks/*", Handler: func(_ http.ResponseWriter, r *http.Request) {
		stop() // the hour is not over
		<-r.Context().Done()
	}})
	code, _, stderr := with(interrupted, program.Streams{}, "-apply", "blocklist", file(t, "feed.txt", wanted))
	assert.Equal(t, program.Done, code, stderr)
	require.NoError(t, interrupted.Err(), "no task was looked at")

	code, _, stderr = with(interrupted, program.Streams{}, "-apply", "-wait", "blocklist", file(t, "feed.txt", wanted+"203.0.113.10"))
	assert.Equal(t, program.Partly, code)
	assert.Contains(t, stderr, "perhaps not everything was changed")
	require.Error(t, interrupted.Err())
}

// A feed of another type changes nothing. The error of a damaged feed names its lines.
func TestRefused(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, list := service(t)
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "twice"})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "twice", Deprecated: true})
	good := file(t, "feed.txt", wanted)
	for want, args := range map[string][]string{
		"geo.txt:2: \"AQ\" does not belong to a list of type IP":                           {"blocklist", file(t, "geo.txt", "\nAQ\n")},
		"/b.txt:3: \"nonsense\" is neither":                                                {"blocklist", good, file(t, "b.txt", "192.0.2.1\n\nnonsense\n!\n")},
		"/c.txt:3: \"nonsense\" is neither":                                                {"blocklist", file(t, "c.txt", "192.0.2.1\n\nnonsense\n!\n")},
		"/d.txt:4: \"desired[9]\" is neither":                                              {"blocklist", file(t, "d.txt", "192.0.2.1\n\nnonsense\ndesired[9]\n")},
		"/e.txt:2: the feed ends without an entry":                                         {"blocklist", good, file(t, "e.txt", "# nothing\n")},
		`no list has the id or name "nobody"; the lists are ["blocklist" "twice" "twice"]`: {"nobody", good},
		`2 lists have the name "twice"; use an id instead: ["`:                             {"twice", good},
	} {
		stdout, stderr := ends(t, program.Failed, append([]string{"-apply"}, args...)...)
		assert.Contains(t, stderr, want)
		assert.Empty(t, stdout)
	}
	assert.Equal(t, held, srv.Entries(list))
}

// A feed that has become short changes nothing. The error names the flag and the value that allow the plan. The plan is
// printed.
func TestRemovalsAreGuarded(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, list := service(t)
	few := file(t, "few.txt", "192.0.2.1\n192.0.2.2\n")
	saved := filepath.Join(t.TempDir(), "plan.json")
	for _, tt := range []struct {
		want, plan string
		args       []string
	}{
		{
			"blocklist: -max-remove: 3 of 5 entries would be removed, for example 192.0.2.3, but at most 2 are allowed; set -max-remove to 3 to allow it\n",
			"add 0, remove 3, keep 2",
			[]string{"-apply", "blocklist", few},
		},
		{"at most 2 are allowed; set", "remove 3", []string{"-max-remove", "2", "-save-plan", saved, "blocklist", few}},
		{"at most 1 are allowed; set", `"max_remove":1`, []string{"-apply", "-json", "-max-remove", "1", "blocklist", few}},
	} {
		stdout, stderr := ends(t, beyond, tt.args...)
		assert.Contains(t, stderr, tt.want)
		assert.Contains(t, stdout, tt.plan)
	}
	assert.NoFileExists(t, saved)
	assert.Equal(t, held, srv.Entries(list))

	for _, limit := range []string{"3", "-1"} {
		ends(t, 4, "-max-remove", limit, "-save-plan", saved, "blocklist", few)
	}
	text, err := os.ReadFile(saved)
	require.NoError(t, err)
	edited := file(t, "edited.json", strings.Replace(string(text), `"max_remove": -1`, `"max_remove": 1`, 1))
	_, stderr := ends(t, beyond, "-apply-plan", edited)
	assert.Contains(t, stderr, "nothing was changed; plan again: webdelivery: plan refused: MaxRemove: 3 of 5")
	assert.Equal(t, held, srv.Entries(list))

	srv.Fail(webdeliverytest.FaultRule{Status: http.StatusForbidden}) // a call that fails is another exit code
	ends(t, program.Failed, "-apply", "blocklist", few)
}

// A feed that has an address of -never changes nothing. -find says which entries cover an address.
func TestNeverAndFind(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv, list := service(t)
	never, feed := file(t, "never.txt", "# office\n 203.0.113.0/28 \n\n2001:db8::1\n"), file(t, "feed.txt", wanted)
	_, stderr := ends(t, beyond, "-apply", "-never", never, "blocklist", feed)
	assert.Contains(t, stderr, "-never: 203.0.113.9 ("+feed+":5) would be added, but it overlaps 203.0.113.0/28; remove that from -never to allow it\n")
	assert.Equal(t, held, srv.Entries(list))
	_, stderr = ends(t, program.Failed, "-apply", "-never", file(t, "bad.txt", "office\n"), "blocklist", feed)
	assert.Contains(t, stderr, "bad.txt:1: \"office\" is neither an address nor a range\n")

	for address, want := range map[string]string{
		"198.51.100.7": `"blocklist" (` + list + `): 198.51.100.0/24, added by "`,
		"203.0.113.9":  "no list covers 203.0.113.9\n",
	} {
		stdout, _ := ends(t, program.Done, "-find", address)
		assert.True(t, strings.HasPrefix(stdout, want), stdout)
	}
	stdout, _ := ends(t, program.Done, "-json", "-find", "203.0.113.9")
	assert.Equal(t, "{\"matches\":[]}\n", stdout)
}
