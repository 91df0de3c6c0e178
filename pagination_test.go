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

// assertBroken checks that a sequence ended with a IncompleteError after so many pages, and that the client sent no
// other request.
func assertBroken(f *fixture, err error, pages int) {
	f.Helper()
	var broken *webdelivery.IncompleteError
	if assert.ErrorAs(f, err, &broken) {
		assert.Equal(f, "/acme/v1/tasks", broken.Path)
		assert.Equal(f, pages, broken.Page)
		assert.NotEmpty(f, broken.Reason)
	}
	assert.Len(f, f.srv.Requests(), pages)
	assert.Zero(f, f.srv.ForeignDials())
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

func TestAllTasksNeverFollowNextURIAstray(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]string{
		"itself":                         "/tasks?page=1&count=1",
		"itself, in another order":       "/tasks?count=1&page=1",
		"itself, prefixed":               "/acme/v1/tasks?count=1&page=1",
		"itself, escaped":                "/t%61sks?p%61ge=1&count=%31",
		"foreign host":                   "http://evil.example.com/acme/v1/tasks?page=2",
		"foreign host over https":        "https://evil.example.com/acme/v1/tasks?page=2",
		"foreign host, this one's port":  "http://evil.example.com:8080/acme/v1/tasks?page=2",
		"foreign host behind slashes":    "//evil.example.com/acme/v1/tasks?page=2",
		"foreign host, three slashes":    "///evil.example.com/acme/v1/tasks?page=2",
		"foreign host behind backslash":  `/\evil.example.com/acme/v1/tasks?page=2`,
		"foreign host behind an at sign": "@evil.example.com/tasks?page=2",
		"other port":                     "http://{ip}:9/acme/v1/tasks?page=2",
		"default port":                   "http://{ip}/acme/v1/tasks?page=2",
		"https in place of http":         "https://{ip}:8080/acme/v1/tasks?page=2",
		"host without scheme":            "//{ip}:8080/acme/v1/tasks?page=2",
		"host and a dot":                 "http://{ip}.:8080/acme/v1/tasks?page=2",
		"userinfo":                       "http://user:secret@{ip}:8080/acme/v1/tasks?page=2",
		"user name":                      "http://user@{ip}:8080/acme/v1/tasks?page=2",
		"this host as userinfo":          "http://{ip}:8080@evil.example.com/acme/v1/tasks?page=2",
		"scheme without host":            "http:/acme/v1/tasks?page=2",
		"opaque":                         "http:tasks?page=2",
		"other scheme":                   "file:///acme/v1/tasks?page=2",
		"dots":                           "/config/../tasks?page=2",
		"dots at the front":              "/../v1/tasks?page=2",
		"dots behind the prefix":         "/acme/v1/../v1/tasks?page=2",
		"encoded dots":                   "/config/%2e%2e/tasks?page=2",
		"half encoded dots":              "/config/.%2E/tasks?page=2",
		"one dot":                        "/./tasks?page=2",
		"encoded dot":                    "/%2e/tasks?page=2",
		"empty element":                  "/acme/v1//tasks?page=2",
		"backslash":                      `/config\..\tasks?page=2`,
		"encoded backslash":              "/tasks%5C?page=2",
		"other collection":               "/config/networklists?page=2",
		"one task":                       "/tasks/a?page=2",
		"slash at the end":               "/tasks/?page=2",
		"encoded slash at the end":       "/tasks%2F?page=2",
		"letter case":                    "/Tasks?page=2",
		"other customer":                 "/other/v1/tasks?page=2",
		"other customer, absolute":       "http://{ip}:8080/other/v1/tasks?page=2",
		"prefix twice":                   "/acme/v1/acme/v1/tasks?page=2",
		"prefix missing, absolute":       "http://{ip}:8080/tasks?page=2",
		"fragment":                       "/tasks?page=2#top",
		"no slash":                       "tasks?page=2",
		"query alone":                    "?page=2",
		"line break":                     "/tasks?page=2\r\nX-Evil: yes",
		"bad escape":                     "/tasks%zz?page=2",
		"blank":                          " ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				ip := strings.TrimSuffix(strings.TrimPrefix(f.srv.URL(), "http://"), ":8080")
				answerWith(f, "/tasks", pageOf(1, strings.ReplaceAll(next, "{ip}", ip), "a"))
				ids, err := readAll(f, webdelivery.TaskListOptions{Page: 1, Count: 1})
				assert.Equal(f, []string{"a"}, ids)
				assertBroken(f, err, 1)
				assert.NotContains(f, fmt.Sprint(err), "secret")
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			})
		})
	}
}

func TestAllTasksNeedNextURIForMore(t *testing.T) {
	t.Parallel()
	for _, next := range []string{``, `,"next_uri":null`, `,"next_uri":""`} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				answerWith(f, "/tasks", `{"items":[{"id":"a"}],"has_more":true`+next+`}`)
				ids, err := readAll(f, webdelivery.TaskListOptions{})
				assert.Equal(f, []string{"a"}, ids)
				assertBroken(f, err, 1)
			})
		})
	}
}

func TestAllTasksEndWhereTheServiceLeadsInACircle(t *testing.T) {
	t.Parallel()
	two, three := "/tasks?page=2&count=1", "/tasks?page=3&count=1"
	tests := []struct {
		name  string
		pages []string
		want  []string
	}{
		{"A B A", []string{pageOf(0, two, "a"), pageOf(0, "/tasks?count=1", "b")}, []string{"a", "b"}},
		{"A B B", []string{pageOf(0, two, "a"), pageOf(0, two, "b")}, []string{"a", "b"}},
		{"A B B in another order", []string{pageOf(0, two, "a"), pageOf(0, "/tasks?count=1&page=2", "b")}, []string{"a", "b"}},
		{"A B B in another form", []string{pageOf(0, two, "a"), pageOf(0, "/acme/v1"+two, "b")}, []string{"a", "b"}},
		{"A B C B", []string{pageOf(1, two, "a"), pageOf(2, three, "b"), pageOf(3, two, "c")}, []string{"a", "b", "c"}},
		{"page_index stays", []string{pageOf(1, two, "a"), pageOf(1, three, "b")}, []string{"a"}},
		{"page_index falls", []string{pageOf(1, two, "a"), pageOf(2, three, "b"), pageOf(1, "/tasks?page=4&count=1", "c")}, []string{"a", "b"}},
		{"three empty pages", []string{pageOf(1, two), pageOf(2, three), pageOf(3, "/tasks?page=4")}, nil},
		{"three empty pages after others", []string{
			pageOf(1, "/tasks?page=2"), pageOf(2, "/tasks?page=3", "a"), pageOf(3, "/tasks?page=4"),
			pageOf(4, "/tasks?page=5"), pageOf(5, "/tasks?page=6"),
		}, []string{"a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				answerWith(f, "/tasks", tt.pages...)
				ids, err := readAll(f, webdelivery.TaskListOptions{Count: 1})
				assert.Equal(f, tt.want, ids)
				assertBroken(f, err, len(tt.pages))
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

// has_more has precedence, but the address of a next page beside it contradicts it. The client does not follow it,
// and yields an error unless the collection's total has been reached.
func TestAllTasksEndWhereHasMoreIsFalse(t *testing.T) {
	t.Parallel()
	for next, broken := range map[string]bool{
		`"/tasks?page=2"`: true, `"https://evil.example.com/"`: true, `""`: false, `null`: false,
		`"/tasks?page=2","total":1`: false, `"/tasks?page=2","total":2`: true,
	} {
		inFakeTime(t, setup{}, func(f *fixture) {
			answerWith(f, "/tasks", `{"items":[{"id":"a"}],"has_more":false,"next_uri":`+next+`}`)
			ids, err := readAll(f, webdelivery.TaskListOptions{})
			assert.Equal(f, []string{"a"}, ids)
			if broken {
				assertBroken(f, err, 1)
				return
			}
			require.NoError(f, err)
			assert.Len(f, f.srv.Requests(), 1)
		})
	}
}

func TestAllTasksKeepToMaxPages(t *testing.T) {
	t.Parallel()
	for maxPages, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 0: 3} {
		t.Run(fmt.Sprint(maxPages), func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				for _, id := range []string{"a", "b", "c"} {
					f.srv.AddTask(testserver.TaskSpec{ID: id})
				}
				ids, err := readAll(f, webdelivery.TaskListOptions{Count: 1, MaxPages: maxPages})
				assert.Equal(f, []string{"a", "b", "c"}[:want], ids)
				assert.Len(f, f.srv.Requests(), want)
				if want < 3 {
					assertBroken(f, err, want)
				} else {
					assert.NoError(f, err)
				}
			})
		})
	}
}
