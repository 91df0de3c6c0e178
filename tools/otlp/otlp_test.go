package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

var program string // the command

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "otlp")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		program = filepath.Join(folder, "webdelivery")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Dir, build.Env = "../../cmd/webdelivery", append(os.Environ(), "GOWORK=")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// environment starts an emulator with two events per second of the last days, and returns the variables that name it.
func environment(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "env")
	emulator := exec.CommandContext(t.Context(), program, "emulator", "--listen", "127.0.0.1:0", "--events", "2", "--env", file)
	require.NoError(t, emulator.Start())
	t.Cleanup(func() { _ = emulator.Process.Kill(); _ = emulator.Wait() })
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, 10*time.Millisecond)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	env := append(os.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=")
	for _, line := range regexp.MustCompile(`export (\w+)='(.*)'`).FindAllStringSubmatch(string(text), -1) {
		env = append(env, line[1]+"="+line[2])
	}
	return env
}

// events returns how many events the service has in a range of time.
func events(t *testing.T, env []string, since, until string) int {
	t.Helper()
	value := func(name string) string {
		for _, pair := range env {
			if rest, found := strings.CutPrefix(pair, name+"="); found {
				return rest
			}
		}
		return ""
	}
	address := value("WEBDELIVERY_BASE_URL") + "/" + value("WEBDELIVERY_CUSTOMER") +
		"/v1/stats/security/events/data?dimensions=client_ip&limit=1&starttime=" + strings.TrimSuffix(since, "Z") + "&endtime=" + strings.TrimSuffix(until, "Z")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	req.SetBasicAuth(value("WEBDELIVERY_USERNAME"), value("WEBDELIVERY_PASSWORD"))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var body struct {
		Total int `json:"total_results"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
	require.Positive(t, body.Total)
	return body.Total
}

// collector is what stands behind the receiver. It keeps the key of each record that it takes.
type collector struct {
	mu     sync.Mutex
	taken  map[string]int
	first  string // key of the first record that it was offered
	offers int
	refuse func(c *collector, keys []string) error // nil takes all
	stop   func()
}

// start starts a receiver at an address, with port 0 at a free one, and returns the address.
func (c *collector) start(t *testing.T, address string) string {
	t.Helper()
	if c.taken == nil {
		c.taken = map[string]int{}
	}
	if address == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address = listener.Addr().String()
		require.NoError(t, listener.Close())
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": address}},
	}).Unmarshal(config))
	behind, err := consumer.NewLogs(c.consume)
	require.NoError(t, err)
	receiver, err := factory.CreateLogs(context.Background(), receivertest.NewNopSettings(component.MustNewType("otlp")), config, behind)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(context.Background(), componenttest.NewNopHost()))
	c.stop = sync.OnceFunc(func() { assert.NoError(t, receiver.Shutdown(context.Background())) })
	t.Cleanup(c.stop)
	return address
}

func (c *collector) consume(_ context.Context, logs plog.Logs) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offers++
	var keys []string
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				key, _ := record.Attributes().Get("event.key")
				keys = append(keys, key.Str())
			}
		}
	}
	if c.first == "" && len(keys) > 0 {
		c.first = keys[0]
	}
	if c.refuse != nil {
		if err := c.refuse(c, keys); err != nil {
			return err
		}
	}
	for _, key := range keys {
		c.taken[key]++
	}
	return nil
}

// count returns how many events it has taken.
func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.taken)
}

// span is a past range of time, and the arguments of an export of it.
func span(address, cursor string) (from, to string, args []string) {
	end := time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
	from, to = end.Add(-30*time.Minute).Format(time.RFC3339), end.Format(time.RFC3339)
	return from, to, []string{"events", "export", "--since", from, "--until", to, "--otlp", "http://" + address, "--cursor", cursor}
}

// run runs the command to its end, and returns what it told.
func run(t *testing.T, env, args []string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	var told bytes.Buffer
	command.Env, command.Stderr = env, &told
	err := command.Run()
	require.NoError(t, ctx.Err(), told.String())
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), told.String()
	}
	require.NoError(t, err)
	return 0, told.String()
}

// One event that the pipeline refuses for good goes aside, and all others arrive.
func TestAPoisonedEvent(t *testing.T) {
	t.Parallel()
	c := &collector{refuse: func(c *collector, keys []string) error {
		for _, key := range keys {
			if key == c.first {
				return consumererror.NewPermanent(errors.New("poisoned"))
			}
		}
		return nil
	}}
	env, cursor := environment(t), filepath.Join(t.TempDir(), "cursor")
	from, to, args := span(c.start(t, ""), cursor)
	code, stderr := run(t, env, args)
	assert.Zero(t, code, stderr)
	assert.Equal(t, events(t, env, from, to)-1, c.count())
	rejected, err := os.ReadFile(cursor + ".rejected")
	require.NoError(t, err)
	assert.Equal(t, 1, bytes.Count(rejected, []byte("\n")))
	assert.Contains(t, string(rejected), c.first)
}

// A receiver that refuses every event loses none: when it takes them again, all arrive.
func TestAReceiverThatRefusesAll(t *testing.T) {
	t.Parallel()
	c := &collector{refuse: func(c *collector, _ []string) error {
		if c.offers < 1500 { // a batch of 500 in halves takes 999
			return consumererror.NewPermanent(errors.New("misconfigured"))
		}
		return nil
	}}
	env, cursor := environment(t), filepath.Join(t.TempDir(), "cursor")
	from, to, args := span(c.start(t, ""), cursor)
	code, stderr := run(t, env, args)
	assert.Zero(t, code, stderr)
	assert.Equal(t, events(t, env, from, to), c.count())
	assert.NoFileExists(t, cursor+".rejected")
}

// A receiver that restarts, and kills of the command, lose no event.
func TestRestartsAndKills(t *testing.T) {
	t.Parallel()
	c := &collector{}
	env, cursor := environment(t), filepath.Join(t.TempDir(), "cursor")
	address := c.start(t, "")
	from, to, args := span(address, cursor)
	for kill := range 2 {
		command := exec.CommandContext(t.Context(), program, args...)
		command.Env = env
		require.NoError(t, command.Start())
		require.Eventually(t, func() bool { return c.count() > 500*(kill+1) }, time.Minute, time.Millisecond)
		c.stop()
		_ = command.Process.Kill()
		_ = command.Wait()
		c.start(t, address)
	}
	code, stderr := run(t, env, args)
	assert.Zero(t, code, stderr)
	assert.Equal(t, events(t, env, from, to), c.count())
}
