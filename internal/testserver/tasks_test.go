package testserver_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Open point 29: following next_uri in any of its forms returns every task once.
func TestSection26FollowingNextURI(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"relative", "prefixed", "absolute"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{BasePath: "/root", Dialect: testserver.Dialect{NextURI: form}})
			for range 5 {
				f.AddTask(testserver.TaskSpec{})
			}
			host, err := url.Parse(f.URL())
			require.NoError(t, err)
			front := map[string]string{"relative": f.URL() + "/acme/v1", "prefixed": "http://" + host.Host}[form]
			seen := map[string]int{}
			next, more := f.URL()+"/acme/v1/tasks?count=2", true
			for more {
				envelope := f.get(next).object(t)
				items, _ := envelope["items"].([]any)
				for _, item := range items {
					task, _ := item.(map[string]any)
					seen[fmt.Sprint(task["id"])]++
				}
				var uri string
				uri, more = envelope["next_uri"].(string)
				next = front + uri
			}
			assert.Equal(t, map[string]int{"task-1": 1, "task-2": 1, "task-3": 1, "task-4": 1, "task-5": 1}, seen)
		})
	}
}
