package webdelivery_test

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// endpoint is a method and a path of the service, with the section of the service document or the open point that has it.
type endpoint struct{ name, source string }

// undocumented are the endpoints whose path the document leaves open.
var undocumented = []endpoint{
	{"POST /config/networklists/{networklist_id}/entries/deletions", openPoint(24)},
	{"GET /stats/security/waf/topk/{category}/dimensions", openPoint(15)},
	{"GET /stats/security/waf/topk/{category}/groupings", openPoint(15)},
	{"GET /stats/security/waf/topk/{category}/metrics", openPoint(15)},
	{"GET /stats/security/trafficshaping/topk/{category}/dimensions", openPoint(15)},
	{"GET /stats/security/trafficshaping/topk/{category}/groupings", openPoint(15)},
	{"GET /stats/security/trafficshaping/topk/{category}/metrics", openPoint(15)},
}

// seldom are requests that a method sends only in cases that its entry in internal/operations does not have.
var seldom = map[string][]string{
	"Tasks.WaitAll":             {"GET /tasks"},                                        // for many tasks
	"NetworkLists.ClearEntries": {"GET /config/networklists/{networklist_id}/entries"}, // if no task is left to end
}

// openPoint links to an open point, and to its details if it has some.
func openPoint(n int) string {
	if slices.Contains(detailed, n) {
		return fmt.Sprintf("[open point %d](open-points.md#point-%d)", n, n)
	}
	return fmt.Sprintf("[open point %d](open-points.md)", n)
}

// detailed are those of the open points below that have details.
var detailed = []int{24}

// documented reads the endpoints from the tables of the service document, section 4.
func documented(t *testing.T) (all []endpoint) {
	t.Helper()
	page := readPage(t, "docs/service-interface.md")
	heading := regexp.MustCompile(`^### (4\.\d) `)
	row := regexp.MustCompile(`^\| (GET|POST|DELETE|PUT|HEAD) \| (/\S+) \|`)
	inline := regexp.MustCompile(`\b(GET|HEAD) (/[^\s;|]+|\.\.\./\w+)`)
	source := ""
	for line := range strings.Lines(page) {
		if at := heading.FindStringSubmatch(line); at != nil {
			source = fmt.Sprintf("[section %s](service-interface.md#%s)", at[1], anchorOf(strings.TrimPrefix(strings.TrimSpace(line), "### ")))
		}
		if at := row.FindStringSubmatch(line); at != nil && source != "" {
			all = append(all, endpoint{at[1] + " " + at[2], source})
		}
		if !strings.HasPrefix(line, "| ") || strings.Contains(line, "| GET |") || source == "" {
			continue
		}
		family := ""
		for _, at := range inline.FindAllStringSubmatch(line, -1) { // a family: "GET .../data; GET .../dimensions; HEAD base"
			path, abbreviated := strings.CutPrefix(at[2], "...")
			if abbreviated {
				path = family + path
			}
			family = strings.TrimSuffix(path, path[strings.LastIndex(path, "/"):])
			all = append(all, endpoint{at[1] + " " + path, source})
		}
	}
	require.Len(t, all, 2+3+3*5+2*2+2+1+7, "endpoints of the service document")
	return all
}

// requestsOf are the endpoints that each method sends requests to, found by calling it at the fake service.
func requestsOf(t *testing.T, endpoints []endpoint) map[string][]string {
	t.Helper()
	sent := map[string][]string{}
	for _, op := range operations.All() {
		if op.Name == "Do" {
			continue // it sends what it is given
		}
		inReliableService(t, setup{}, func(f *fixture) {
			use, err := op.Prepare(f.Context(), operations.Service{Server: f.srv, Client: f.client, Task: operations.FirstTask, List: operations.FirstList})
			require.NoError(f, err)
			before := len(f.srv.Requests())
			require.NoError(f, op.Run(f.Context(), f.client, use), op)
			for _, r := range f.srv.Requests()[before:] {
				sent[op.Name] = append(sent[op.Name], endpointOf(f.T, endpoints, r))
			}
		})
	}
	for method, ends := range seldom {
		require.Contains(t, sent, method)
		for _, e := range ends {
			assert.NotContains(t, sent[method], e, "seldom need not name it")
		}
		sent[method] = append(sent[method], ends...)
	}
	for name, ends := range sent {
		slices.Sort(ends)
		sent[name] = slices.Compact(ends)
	}
	return sent
}

// endpointOf finds the endpoint of a request. The one with the fewest placeholders is meant.
func endpointOf(t *testing.T, endpoints []endpoint, r testserver.Request) string {
	t.Helper()
	placeholder := regexp.MustCompile(`\{\w+\}`)
	var fits []string
	for _, e := range endpoints {
		fitting, err := path.Match(placeholder.ReplaceAllString(e.name, "*"), r.Method+" "+strings.TrimPrefix(r.Path, "/"+customer+"/v1"))
		require.NoError(t, err)
		if fitting {
			fits = append(fits, e.name)
		}
	}
	require.NotEmpty(t, fits, "%s %s is no endpoint of the service document", r.Method, r.Path)
	return slices.MinFunc(fits, func(a, b string) int { return cmp.Compare(strings.Count(a, "{"), strings.Count(b, "{")) })
}

// docs/endpoints.md has every endpoint of the service document with the methods that use it, and every method with its
// endpoints.
func TestEndpointsPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("calls every method")
	}
	endpoints := append(documented(t), undocumented...)
	sent := requestsOf(t, endpoints)
	methodsOf := map[string][]string{}
	for method, ends := range sent {
		for _, e := range ends {
			methodsOf[e] = append(methodsOf[e], method)
		}
	}

	byEndpoint := "| Endpoint | Methods | Source |\n|---|---|---|\n"
	for _, e := range endpoints {
		slices.Sort(methodsOf[e.name])
		assert.NotEmpty(t, methodsOf[e.name], "no method uses %s", e.name)
		byEndpoint += fmt.Sprintf("| `%s` | %s | %s |\n", e.name, "`"+strings.Join(methodsOf[e.name], "`, `")+"`", e.source)
	}
	byMethod := "| Method | Endpoints |\n|---|---|\n"
	for _, method := range slices.Sorted(maps.Keys(sent)) {
		byMethod += fmt.Sprintf("| `%s` | %s |\n", method, "`"+strings.Join(sent[method], "`, `")+"`")
	}

	page := readPage(t, "docs/endpoints.md")
	for _, table := range []string{byEndpoint, byMethod} {
		stands := strings.Contains(page, table)
		assert.True(t, stands, "docs/endpoints.md lacks this table:\n%s", table)
	}
	for _, method := range operations.Methods() {
		stands := strings.Contains(page, "`"+method.Name+"`")
		assert.True(t, stands, "docs/endpoints.md lacks `%s`", method.Name)
	}
}
