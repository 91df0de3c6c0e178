package hostile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// With these variables, a process of this test purges: the address of the service, and the number of purges.
const (
	purgerBase  = "HOSTILE_PURGER_BASE"
	purgerCount = "HOSTILE_PURGER_COUNT"
)

// runPurger purges one URI after the other, if a test started this process for that. It returns whether it did.
func runPurger() bool {
	count, err := strconv.Atoi(os.Getenv(purgerCount))
	if err != nil {
		return false
	}
	client, err := webdelivery.NewClient(os.Getenv(purgerBase), "shares", webdelivery.BasicAuth("alice", "correct-horse-battery"))
	for n := 0; err == nil && n < count; n++ {
		_, err = client.Purge.Submit(context.Background(), webdelivery.PurgeRequest{
			Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact(fmt.Sprintf("https://www.example.com/%d", n))},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// Four processes do not know each other and share no store. Together they are too fast, so the service rejects purges
// with a 503 without Retry-After. No purge is lost. HOSTILE_PURGES=15 takes about two minutes.
func TestProcessesThatShareNothing(t *testing.T) {
	t.Parallel()
	const processes = 4
	s := scenario{purges: 3}
	for _, limit := range []Limit{CountAccepted, CountAll} {
		t.Run(string(limit), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
			defer cancel()
			server, err := Start(ctx, Plan{Protocol: HTTP1, Limit: limit})
			require.NoError(t, err)
			began := time.Now()
			var running []*exec.Cmd
			for range processes {
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), purgerBase+"=http://"+server.Addr(), purgerCount+"="+strconv.Itoa(s.wanted()))
				cmd.Stderr = os.Stderr
				require.NoError(t, cmd.Start())
				running = append(running, cmd)
			}
			for _, cmd := range running {
				assert.NoError(t, cmd.Wait(), "no purge is lost")
			}
			arrivals, err := server.Stop()
			require.NoError(t, err)
			wanted := processes * s.wanted()
			t.Logf("%d purges took %v; %.0f %% of %d requests were refused", wanted, time.Since(began).Round(time.Millisecond),
				100*(1-float64(wanted)/float64(len(arrivals))), len(arrivals))
			assert.Greater(t, len(arrivals), wanted, "some were refused")
		})
	}
}
