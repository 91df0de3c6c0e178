package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// With these variables, a process of this test calls the service once with each of the three kinds. A process reads the
// proxies and trusted authorities of its environment only once, so each case needs its own process.
const (
	callerBase    = "HOSTILE_CALLER_BASE"
	callerTimeout = "HOSTILE_CALLER_TIMEOUT" // of an attempt; empty: 10 s
)

// called is the result of one call.
type called struct {
	Kind     string `json:"kind"`
	Error    string `json:"error"` // error and log of the call
	Log      string `json:"log"`
	Outcome  string `json:"outcome"`
	Attempts int    `json:"attempts"`
}

// runCaller makes the calls, if a test started this process for that. It returns whether it did.
func runCaller() bool {
	base := os.Getenv(callerBase)
	if base == "" {
		return false
	}
	timeout, err := time.ParseDuration(os.Getenv(callerTimeout))
	if err != nil {
		timeout = 10 * time.Second
	}
	var log bytes.Buffer
	options := []webdelivery.Option{
		webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: time.Millisecond, MaxWait: time.Second}), webdelivery.WithAttemptTimeout(timeout),
		webdelivery.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	}
	c, err := webdelivery.NewClient(base, "customer", webdelivery.BasicAuth("alice", "correct-horse-battery"), options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	for _, k := range kinds {
		log.Reset()
		err := k.call(context.Background(), c)
		result := called{Kind: k.name, Outcome: webdelivery.OutcomeOf(err).String(), Attempts: attemptsOf(err)}
		if err != nil {
			result.Error = fmt.Sprintf("%v %+v %#v", err, err, err)
		}
		result.Log = log.String()
		_ = out.Encode(result)
	}
	return true
}

// caller is a process that calls the service, with its environment.
func caller(ctx context.Context, environment ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, environment...)
	return cmd
}

// callers runs a caller, and returns the result of each kind of call.
func callers(t *testing.T, environment ...string) []called {
	t.Helper()
	cmd := caller(bounded(t), environment...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var results []called
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var one called
		require.NoError(t, d.Decode(&one))
		results = append(results, one)
	}
	require.Len(t, results, len(kinds))
	return results
}
