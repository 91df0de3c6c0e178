package webdelivery_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The dialect determines the name of the start parameter (open point 10).
func TestStartTimeParam(t *testing.T) {
	t.Parallel()
	other := webdelivery.WithDialect(webdelivery.Dialect{StartTimeParam: "startime"})
	fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{other}}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a"}))
		_, err := f.Client.Stats.Events.Query(f.Context(), fixture.ADay)
		require.NoError(f, err)
		values, err := url.ParseQuery(f.Srv.Requests()[0].RawQuery)
		require.NoError(f, err)
		assert.Equal(f, "1999-12-31T00:00:00", values.Get("startime"))
		assert.NotContains(f, values, "starttime")
	})
}

// The fake's dialects cover every response that the service document leaves open (open points 19, 22, 23, 24).
func TestNetworkListDialects(t *testing.T) {
	t.Parallel()
	const deletePath = "/config/networklists/{list}/entries/{entry}"
	s := fixture.Setup{
		Server: testserver.Config{Dialect: testserver.Dialect{
			EntryKey: "value", EntryDeletePath: deletePath, BatchDeletionMethod: http.MethodDelete, ListDeleteReply: "task",
		}},
		Options: []webdelivery.Option{webdelivery.WithDialect(webdelivery.Dialect{
			EntryKey: "value", EntryDeletePath: deletePath, BatchDeletionMethod: http.MethodDelete,
		})},
	}
	fixture.WithList(t, s, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		lists, ctx := f.Client.NetworkLists, f.Context()
		_, err := lists.AddEntries(ctx, fixture.ListID, []string{"192.0.2.2", "192.0.2.3"})
		require.NoError(f, err)
		page, err := lists.Entries(ctx, fixture.ListID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		require.Len(f, page.Items, 3)
		_, err = lists.DeleteEntry(ctx, fixture.ListID, page.Items[0].ID)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.2", "192.0.2.3"}, f.Srv.Entries(fixture.ListID))
		_, err = lists.ClearEntries(ctx, fixture.ListID)
		require.NoError(f, err)
		assert.Empty(f, f.Srv.Entries(fixture.ListID))
		task, err := lists.Delete(ctx, fixture.ListID)
		require.NoError(f, err)
		require.NotNil(f, task)
	})
}

// The prefix is escaped in the SDK's dialect, as in a path; the fake has it unescaped.
func TestTaskPathsFollowTheDialect(t *testing.T) {
	t.Parallel()
	for prefix, plain := range map[string]string{"/ops/v2": "/ops/v2", "/long%20running": "/long running"} {
		s := fixture.Setup{
			Server:  testserver.Config{Dialect: testserver.Dialect{TasksPrefix: plain}},
			Options: []webdelivery.Option{webdelivery.WithDialect(webdelivery.Dialect{TasksPrefix: prefix})},
		}
		fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
			for _, id := range []string{"a", "b"} {
				f.Srv.AddTask(testserver.TaskSpec{ID: id})
			}
			_, err := f.Client.Tasks.Get(f.Context(), "a")
			require.NoError(f, err)
			_, err = f.Client.Tasks.WaitAll(f.Context(), []string{"a"})
			require.NoError(f, err)
			ids, err := readAll(f, webdelivery.TaskListOptions{Count: 1})
			require.NoError(f, err)
			assert.Equal(f, []string{"a", "b"}, ids)
			for _, r := range f.Srv.Requests() {
				assert.Regexp(f, "^/acme/v1"+prefix+"/tasks(/a)?$", r.Path)
			}
		})
	}
}
