package redistest

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// User may do in Redis what the package page says, also in a cluster. The name is also the password.
const User = "purger"

// World is a server of Redis and a service.
type World struct {
	*testing.T

	Redis   *Server
	Service *webdeliverytest.Server
}

// InWorld runs a test on each kind of server.
func InWorld(t *testing.T, test func(w *World), options ...webdeliverytest.Option) {
	acl := append([]string{"--user", User, "on", ">" + User, "+command", "+cluster|slots"}, Rights(t)...)
	OnServers(t, func(t *testing.T, s *Server) {
		test(&World{T: t, Redis: s, Service: webdeliverytest.NewServer(t, options...)})
	}, acl...)
}

// Rights returns the permissions of the Redis user that doc.go of the package under test lists, in the lines of code
// blocks that begin with ~ or +.
func Rights(t *testing.T) (rights []string) {
	t.Helper()
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, line := range regexp.MustCompile(`(?m)^//\t([~+].*)$`).FindAllStringSubmatch(string(page), -1) {
		rights = append(rights, strings.Fields(line[1])...)
	}
	require.NotEmpty(t, rights)
	return rights
}

// Without adds a user who lacks one right, which their errors call name.
func (w *World) Without(right string) (user, name string) {
	user, name = "without"+right, strings.TrimPrefix(right, "+")
	rights := slices.DeleteFunc(Rights(w.T), func(r string) bool { return r == right })
	w.Do("ACL SETUSER " + user + " on >" + User + " " + strings.Join(rights, " "))
	if name == right {
		name = "key"
	}
	return user, name
}

// Do has a user who may do everything send a command, and returns the reply.
func (w *World) Do(command string) (reply string) {
	w.Helper()
	reply, err := ask(w.Redis.Addr, command)
	require.NoError(w, err, command)
	require.NotRegexp(w, "^-", reply, command)
	return strings.TrimSpace(reply)
}

// Cluster has the server replaced by a cluster of one node.
func (w *World) Cluster() {
	w.Redis = w.Redis.another(w.T, slices.Concat(w.Redis.args, []string{"--cluster-enabled", "yes"})...)
	w.Do("CLUSTER ADDSLOTSRANGE 0 16383")
	w.Until("the cluster works", func() bool { return strings.Contains(w.Do("CLUSTER INFO"), "cluster_state:ok") })
}

// Within returns a context for one call.
func (w *World) Within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

// Soon is more than anything in these tests takes.
func (w *World) Soon() context.Context { return w.Within(time.Minute) }

// Until waits for a condition.
func (w *World) Until(what string, condition func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		require.True(w, time.Now().Before(end), what)
	}
}
