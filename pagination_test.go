package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// readAll reads a sequence to its end and returns the ids and the error. It checks that nothing follows an error.
func readAll(f *fixture, options webdelivery.TaskListOptions) (ids []string, err error) {
	f.Helper()
	for task, e := range f.client.Tasks.All(f.Context(), options) {
		require.NoError(f, err, "the sequence yields something after its error")
		if err = e; e != nil {
			assert.Zero(f, task)
			continue
		}
		ids = append(ids, task.ID)
	}
	return ids, err
}

// pageOf is a page with these tasks and, unless next is "", the address of another one. An index of 0 is left out.
func pageOf(index int, next string, ids ...string) string {
	page := map[string]any{"items": []any{}, "has_more": next != "", "next_uri": next}
	if index != 0 {
		page["page_index"] = index
	}
	for _, id := range ids {
		page["items"] = append(page["items"].([]any), map[string]string{"id": id})
	}
	body, _ := json.Marshal(page)
	return string(body)
}

func TestAllTasksFollowNextURIInEveryForm(t *testing.T) {
	t.Parallel()
	for _, basePath := range []string{"", "/root"} {
		for _, form := range []string{"relative", "prefixed", "absolute"} {
			t.Run(basePath+" "+form, func(t *testing.T) {
				t.Parallel()
				server := testserver.Config{BasePath: basePath, Dialect: testserver.Dialect{NextURI: form}}
				inFakeTime(t, setup{server: server}, func(f *fixture) {
					for i := range 7 {
						f.srv.AddTask(testserver.TaskSpec{ID: fmt.Sprint("t", i), Operation: "a&b ü"})
					}
					f.srv.AddTask(testserver.TaskSpec{ID: "other"})
					ids, err := readAll(f, webdelivery.TaskListOptions{Operation: "a&b ü", Count: 3})
					require.NoError(f, err)
					assert.Equal(f, []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6"}, ids)
					assert.Equal(f, 3, f.srv.Count(http.MethodGet, "/tasks"))
					assert.Len(f, f.srv.Requests(), 3)

					ids, err = readAll(f, webdelivery.TaskListOptions{Operation: "a&b ü", Count: 3, Page: 2})
					require.NoError(f, err)
					assert.Equal(f, []string{"t3", "t4", "t5", "t6"}, ids, "it begins at the requested page")
				})
			})
		}
	}
}

// The client follows no next_uri that leads elsewhere; package address has more of them.
func TestAllTasksNeverFollowNextURIAstray(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{
		"itself":                      "/tasks?page=1&count=1",
		"itself, in another order":    "/tasks?count=1&page=1",
		"foreign host":                "http://evil.example.com/acme/v1/tasks?page=2",
		"foreign host behind slashes": "//evil.example.com/acme/v1/tasks?page=2",
		"userinfo":                    "http://user:secret@{ip}:8080/acme/v1/tasks?page=2",
		"dots":                        "/config/../tasks?page=2",
		"other collection":            "/config/networklists?page=2",
		"other customer":              "/other/v1/tasks?page=2",
		"no slash":                    "tasks?page=2",
		"bad escape":                  "/tasks%zz?page=2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				ip := strings.TrimSuffix(strings.TrimPrefix(f.srv.URL(), "http://"), ":8080")
				answerWith(f, "/tasks", pageOf(1, strings.ReplaceAll(next, "{ip}", ip), "a"))
				ids, err := readAll(f, webdelivery.TaskListOptions{Page: 1, Count: 1})
				assert.Equal(f, []string{"a"}, ids)
				var broken *webdelivery.IncompleteError
				require.ErrorAs(f, err, &broken)
				assert.Equal(f, "/acme/v1/tasks", broken.Path)
				assert.Equal(f, 1, broken.Page)
				assert.NotEmpty(f, broken.Reason)
				assert.Len(f, f.srv.Requests(), 1)
				assert.Zero(f, f.srv.ForeignDials())
				assert.NotContains(f, fmt.Sprint(err), "secret")
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			})
		})
	}
}

// All reads on after an empty page, however the service writes that it has no items.
func TestAllTasksReadOnAfterEmptyPages(t *testing.T) {
	t.Parallel()
	for _, items := range []string{`"items":[]`, `"items":null`, `"tasks":[]`, `"tasks":null`, `"total":2,"items":[]`} {
		t.Run(items, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				empty := `{` + items + `,"has_more":true,"next_uri":"/tasks?page=%d"}`
				answerWith(f, "/tasks", fmt.Sprintf(empty, 2), fmt.Sprintf(empty, 3), pageOf(3, "/tasks?page=4", "a"),
					fmt.Sprintf(empty, 5), fmt.Sprintf(empty, 6), pageOf(6, "", "b"))
				ids, err := readAll(f, webdelivery.TaskListOptions{})
				require.NoError(f, err)
				assert.Equal(f, []string{"a", "b"}, ids)
				assert.Len(f, f.srv.Requests(), 6)
			})
			inFakeTime(t, setup{}, func(f *fixture) {
				answerWith(f, "/tasks", `{`+items+`,"has_more":false}`)
				page, err := f.client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
				require.NoError(f, err)
				assert.NotNil(f, page.Items)
				assert.Empty(f, page.Items)
			})
		})
	}
}
