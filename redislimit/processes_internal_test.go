package redislimit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redistest"
)

const processes = 4

// process is another process of this program: the service, or a child that purges.
type process struct {
	*exec.Cmd
	stdin io.Closer
	lines chan string
}

// startProcess starts it in a role of TestMain.
func startProcess(t *testing.T, role string, environment ...string) *process {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), roleOf+"="+role), environment...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p := &process{cmd, stdin, make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	return p
}

// end asks the process to end, and returns its output.
func (p *process) end(t *testing.T) (lines []string) {
	require.NoError(t, p.stdin.Close())
	for line := range p.lines {
		lines = append(lines, line)
	}
	assert.NoError(t, p.Wait())
	return lines
}

// stop suspends a process for a while, at an arbitrary instant.
func stop(t *testing.T, p *os.Process, d time.Duration) {
	redistest.Suspend(t, p)
	time.Sleep(d)
	redistest.Resume(t, p)
}

// 4 processes share a budget for 10 seconds, or the time in REDISLIMIT_TEST_DURATION. One of them is 150 ms away from
// Redis, another one needs up to 300 ms for each connection to the service. These two purge with a client of the SDK,
// the others by hand. A process is suspended for a while, Redis is suspended for a while, and its clock is set back.
// Three purges must never arrive at the service within a second.
//
// The service is another process with one clock. The times that it records lie between the grant and the end of a
// permit. So a busy machine makes the time between two arrivals longer, never shorter.
func TestProcessesShareOneBudget(t *testing.T) {
	t.Parallel()
	duration := 10 * time.Second
	if d := os.Getenv("REDISLIMIT_TEST_DURATION"); d != "" {
		var err error
		duration, err = time.ParseDuration(d)
		require.NoError(t, err)
	}
	onServers(t, func(t *testing.T, s *server) {
		service := startProcess(t, "service")
		url := <-service.lines
		away := s.through(t, 75*time.Millisecond)
		children := make([]*process, processes)
		for i := range children {
			role, redis, setUp := "child", s.Addr, time.Duration(0)
			if i < processes/2 {
				role = "client"
			}
			switch i {
			case 0:
				redis = away.Addr
			case 1:
				setUp = 300 * time.Millisecond
			}
			children[i] = startProcess(t, role, redisOf+"="+redis, serviceOf+"="+url, setUpOf+"="+setUp.String())
		}
		began := time.Now()
		for round := 0; time.Since(began) < duration; round++ {
			time.Sleep(2 * time.Second)
			stop(t, children[round%processes].Process, 1500*time.Millisecond)
			time.Sleep(1500 * time.Millisecond)
			s.Hang(t)
			time.Sleep(1500 * time.Millisecond)
			s.Wake(t)
			time.Sleep(1500 * time.Millisecond)
			s.step(t, -time.Hour)
			time.Sleep(2 * time.Second)
		}

		total, unavailable, each := 0, 0, make([]int, processes)
		for i, child := range children {
			for _, line := range child.end(t) {
				switch line {
				case "purged":
					each[i]++
				case "unavailable":
					unavailable++
				default:
					assert.Fail(t, line)
				}
			}
			assert.Positive(t, each[i], "process %d got no permit", i)
			total += each[i]
		}
		took := time.Since(began)
		var arrivals []time.Duration
		for _, line := range service.end(t) {
			at, err := strconv.ParseInt(line, 10, 64)
			require.NoError(t, err)
			arrivals = append(arrivals, time.Duration(at))
		}
		assert.Len(t, arrivals, total)
		slices.Sort(arrivals)
		shortest := time.Hour
		for i := 2; i < len(arrivals); i++ {
			shortest = min(shortest, arrivals[i]-arrivals[i-2])
		}
		assert.GreaterOrEqual(t, shortest, time.Second, "three purges within a second")
		assert.LessOrEqual(t, total, 2*(1+int(took/time.Second)))
		t.Logf("%d arrivals in %.1f s, %v by process; shortest time of three: %v; %d times without Redis",
			total, took.Seconds(), each, shortest, unavailable)
	})
}

// The rate of one process and of four, for the documentation. It measures, and asserts nearly nothing.
func TestRate(t *testing.T) {
	t.Parallel()
	if os.Getenv("REDISLIMIT_TEST_RATE") == "" {
		t.Skip("REDISLIMIT_TEST_RATE is not set")
	}
	onServers(t, func(t *testing.T, s *server) {
		for _, n := range []int{1, processes} {
			service := startProcess(t, "service")
			url := <-service.lines
			children := make([]*process, n)
			for i := range children {
				children[i] = startProcess(t, "child", redisOf+"="+s.Addr, serviceOf+"="+url, setUpOf+"=0s")
			}
			time.Sleep(20 * time.Second)
			var each []int
			for _, child := range children {
				each = append(each, strings.Count(strings.Join(child.end(t), " "), "purged"))
			}
			lines := service.end(t)
			require.NotEmpty(t, lines)
			first, _ := strconv.Atoi(lines[0])
			last, _ := strconv.Atoi(lines[len(lines)-1])
			t.Logf("%d processes: %.3f purges a second, %v by process", n,
				float64(len(lines)-2)/time.Duration(last-first).Seconds(), fmt.Sprint(each))
		}
	})
}
