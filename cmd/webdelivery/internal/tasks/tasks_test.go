package tasks_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/tasks"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// The exit code is 3 if some of the tasks ended well or exist, and 1 if none did. Each task that was read is printed, a
// failed one with its error.
func TestTasks(t *testing.T) {
	t.Parallel()
	times := regexp.MustCompile(`20\d\d-[^,]+Z`)
	const good, bad, long = "good,deploy,COMPLETE,100,T,\n", "bad,deploy,FAILED,100,T,origin unknown\n", "long,export,IN_PROGRESS,0,T,\n"
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"list", cli.Done, bad + good + long, ""},
		{"list --operation export --since yesterday", cli.Done, long, ""},
		{"list --status FAILED", cli.Done, bad, ""},
		{"list --since later", cli.Misuse, "", `--since "later": want`},
		{"get bad none good", cli.Partly, bad + good, "404 Not Found"},
		{"get none", cli.Failed, "", "404 Not Found"},
		{"wait good", cli.Done, good, ""},
		{"wait bad good", cli.Partly, bad + good, "task bad failed: origin unknown"},
		{"wait bad", cli.Failed, bad, "task bad failed: origin unknown"},
		{"wait long good --timeout 1ns", cli.Failed, "", "--timeout 1ns is over\nwebdelivery: to wait again: webdelivery tasks wait long good\n"},
	} {
		srv := webdeliverytest.NewServer(t)
		srv.AddTask(webdeliverytest.TaskSpec{ID: "good", Operation: "deploy"})
		srv.AddTask(webdeliverytest.TaskSpec{ID: "bad", Operation: "deploy", Error: &webdeliverytest.TaskError{Message: "origin unknown"}})
		srv.AddTask(webdeliverytest.TaskSpec{ID: "long", Operation: "export", Duration: time.Hour})
		r := clitest.Run(t, srv, tasks.Command, "", strings.Fields("tasks "+tt.args+" -o csv")...)
		assert.Equal(t, tt.code, r.Code, tt.args)
		assert.Contains(t, r.Stderr, tt.stderr)
		assert.Equal(t, tt.stdout, times.ReplaceAllString(strings.TrimPrefix(r.Stdout, "id,operation,status,progress,last_updated,error\n"), "T"), tt.args)
	}
}
