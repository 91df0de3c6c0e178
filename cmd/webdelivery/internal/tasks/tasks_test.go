package tasks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/tasks"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// service has a task that ended well, one that failed, and one that runs for an hour.
func service(t *testing.T) *webdeliverytest.Server {
	t.Helper()
	srv := webdeliverytest.NewServer(t)
	srv.AddTask(webdeliverytest.TaskSpec{ID: "good", Operation: "deploy-property"})
	srv.AddTask(webdeliverytest.TaskSpec{ID: "bad", Operation: "deploy-property", Error: &webdeliverytest.TaskError{Message: "origin unknown"}})
	srv.AddTask(webdeliverytest.TaskSpec{ID: "long", Operation: "export-logs", Duration: time.Hour})
	return srv
}

// The exit code is 3 if some of the tasks ended well or exist, and 1 if none did. Each task that exists is printed.
func TestTasks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   []string
		code   int
		ids    []string
		stderr string
	}{
		{[]string{"list"}, cli.Done, []string{"bad", "good", "long"}, ""},
		{[]string{"list", "--operation", "export-logs", "--since", "yesterday"}, cli.Done, []string{"long"}, ""},
		{[]string{"list", "--since", "later"}, cli.Misuse, nil, `--since "later": want`},
		{[]string{"get", "bad", "none", "good"}, cli.Partly, []string{"bad", "good"}, "404 Not Found"},
		{[]string{"get", "none"}, cli.Failed, nil, "404 Not Found"},
		{[]string{"wait", "good"}, cli.Done, []string{"good"}, ""},
		{[]string{"wait", "bad", "good"}, cli.Partly, []string{"bad", "good"}, "task bad failed: origin unknown"},
		{[]string{"wait", "bad"}, cli.Failed, []string{"bad"}, "task bad failed: origin unknown"},
		{[]string{"wait", "long", "--timeout", "1ms"}, cli.Failed, nil, "--timeout 1ms is over; to wait again: webdelivery tasks wait long"},
	} {
		r := clitest.Run(t, service(t), tasks.Command, "", append(append([]string{"tasks"}, tt.args...), "-o", "csv")...)
		assert.Equal(t, tt.code, r.Code, tt.args)
		assert.Contains(t, r.Stderr, tt.stderr)
		assert.Equal(t, tt.ids, firstCells(r.Stdout), tt.args)
	}
}

// A failed task has its error in every format.
func TestAFailedTask(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"table": "  origin unknown\n", "csv": ",origin unknown\n", "json": `"message": "origin unknown"`, "ndjson": `"message":"origin unknown"`,
	} {
		r := clitest.Run(t, service(t), tasks.Command, "", "tasks", "get", "bad", "-o", format)
		assert.Equal(t, cli.Done, r.Code)
		assert.Contains(t, r.Stdout, want)
	}
}

func firstCells(csv string) (cells []string) {
	for line := range strings.Lines(csv) {
		cell, _, _ := strings.Cut(line, ",")
		if cell != "id" {
			cells = append(cells, cell)
		}
	}
	return cells
}
