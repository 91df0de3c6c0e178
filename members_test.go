package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// bodyReader reads one body by one operation, and returns the values as one line.
type bodyReader struct {
	name, body, want string
	read             func(t *testing.T, c *webdelivery.Client) (string, error)
}

// bodyReaders returns one reader for every kind of response. The bodies are those of the service document; each value
// is different.
func bodyReaders() []bodyReader {
	return []bodyReader{
		{
			"a task", `{"id":"t1","status":"s1","complete":true,"progress":40,"begin_time":"2026-11-20T08:30:00Z","user":{"id":"u1"},"error_info":{"message":"m1"}}`,
			"t1 s1 true 40 2026 u1 m1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				task, err := c.Tasks.Get(t.Context(), "t1")
				if err != nil {
					return "", err
				}
				message := ""
				if task.ErrorInfo != nil {
					message = task.ErrorInfo.Message
				}
				return fmt.Sprint(task.ID, " ", task.Status, " ", task.Complete, task.Progress, task.BeginTime.Year(), " ", task.User.ID, " ", message), nil
			},
		},
		{
			"a page", `{"items":[{"id":"t1"}],"total":9,"has_more":true,"page_count":9,"page_index":1,"next_uri":"/tasks?page=2"}`, "1 t1 9 true 9 1 /tasks?page=2",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				p, err := c.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
				if err != nil {
					return "", err
				}
				return fmt.Sprint(len(p.Items), " ", p.Items[0].ID, " ", p.Total, p.HasMore, p.PageCount, p.PageIndex, " ", p.NextURI), nil
			},
		},
		{
			"a list", `{"id":"l1","type":"IP","list":["192.0.2.1"],"name":"n1","deprecated":true}`, "l1 IP [192.0.2.1] n1 true",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				l, err := c.NetworkLists.Get(t.Context(), "l1")
				if err != nil {
					return "", err
				}
				return fmt.Sprint(l.ID, " ", l.Type, " ", l.List, " ", l.Name, " ", l.Deprecated), nil
			},
		},
		{
			"a bare array of entries", `[{"id":"e1","entry":"192.0.2.1","added_by":"a1"}]`, "e1 192.0.2.1 a1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				p, err := c.NetworkLists.Entries(t.Context(), "l1", webdelivery.EntryOptions{})
				if err != nil {
					return "", err
				}
				return fmt.Sprint(p.Items[0].ID, " ", p.Items[0].Entry, " ", p.Items[0].AddedBy), nil
			},
		},
		{
			"an entry", `{"id":"e1","type":"GEO","network_list_uri":"/config/networklists/l1"}`, "e1 GEO /config/networklists/l1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				e, err := c.NetworkLists.GetEntry(t.Context(), "l1", "e1")
				if err != nil {
					return "", err
				}
				return fmt.Sprint(e.ID, " ", e.Type, " ", e.NetworkListURI), nil
			},
		},
		{
			"a transaction", `{"description":"d1","transaction_id":7,"transaction_response":{"transaction_status":"PENDING","percent_received_responses":5}}`,
			"7 d1 PENDING 5",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				x, err := c.Purge.Status(t.Context(), 7)
				if err != nil {
					return "", err
				}
				return fmt.Sprint(x.TransactionID, " ", x.Description, " ", x.TransactionStatus, " ", x.PercentReceivedResponses), nil
			},
		},
		{
			"the receipt of a purge", `{"description":"d1","transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/7"}}`, "7 d1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				r, err := c.Purge.Submit(t.Context(), purgeOf(anObject))
				if err != nil {
					return "", err
				}
				return fmt.Sprint(r.TransactionID, " ", r.Description), nil
			},
		},
		{
			"the task of a change", `{"task_id":"t1"}`, "t1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				task, err := c.NetworkLists.Delete(t.Context(), "l1")
				if err != nil || task == nil {
					return "", err
				}
				return task.ID, nil
			},
		},
		{
			"a session", `{"id":"s1"}`, "s1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				s, err := c.Sessions.Create(t.Context())
				if err != nil {
					return "", err
				}
				return s.ID, nil
			},
		},
		{
			"dimensions", `{"dimensions":[{"name":"a"},{"name":"b"}]}`, "[a b]",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				n, err := c.Stats.Events.Dimensions(t.Context())
				if err != nil {
					return "", err
				}
				return fmt.Sprint(n.Names), nil
			},
		},
		{
			"rows", `{"query":{"limit":5,"filters":"f1"},"columns":[{"name":"a"},{"name":"b"}],"rows":[[1,2]],"total_results":1}`, "[a b] [[1,2]] 1 5 f1",
			func(t *testing.T, c *webdelivery.Client) (string, error) {
				r, err := c.Stats.Events.Query(t.Context(), aDay)
				if err != nil {
					return "", err
				}
				return fmt.Sprint(r.Columns, " ", r.Rows, " ", r.TotalResults, r.Query.Limit, " ", r.Query.Filters), nil
			},
		},
	}
}

// Names of members are case-sensitive, as the service document writes them. Name is another member than name, beside
// it and in its place, although encoding/json takes them for the same.
func TestNamesOfMembersAreCaseSensitive(t *testing.T) {
	t.Parallel()
	spellings := map[string]func(string) string{
		"Title":     func(name string) string { return strings.ToUpper(name[:1]) + name[1:] },
		"UPPER":     strings.ToUpper,
		"an escape": func(name string) string { return fmt.Sprintf(`\u%04x%s`, strings.ToUpper(name[:1])[0], name[1:]) },
		"a long s":  func(name string) string { return strings.ReplaceAll(name, "s", "\u017f") },
		"a Kelvin":  func(name string) string { return strings.ReplaceAll(name, "k", "\u212a") },
	}
	for spelling, spell := range spellings {
		for _, r := range bodyReaders() {
			var plain any
			require.NoError(t, json.Unmarshal([]byte(r.body), &plain))
			for place, how := range map[string]twin{"before": {spell, true, true}, "behind": {spell, false, true}, "in its place": {spell: spell}} {
				t.Run(strings.Join([]string{r.name, spelling, place}, "/"), func(t *testing.T) {
					t.Parallel()
					body := how.print(plain)
					require.True(t, json.Valid([]byte(body)), body)
					got, err := r.read(t, always(t, []byte(body)))
					switch {
					case !how.beside && differs(r.body, spell):
						assert.NotEqual(t, r.want, got, body)
					case err != nil: // the client refuses a page with a member twice, in any letter case
						assert.ErrorContains(t, err, "comes twice", body)
					default:
						assert.Equal(t, r.want, got, body)
					}
				})
			}
		}
	}
}

// differs reports whether some name in the text has another spelling.
func differs(text string, spell func(string) string) bool {
	for _, name := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(text, -1) {
		if spell(name[1]) != name[1] {
			return true
		}
	}
	return false
}

// twin prints JSON with names in another spelling.
type twin struct {
	spell         func(name string) string // nil: unchanged
	first, beside bool                     // beside the right name with another value, before it or behind it
}

func (w twin) print(value any) string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			right, other := fmt.Sprintf("%q:%s", name, w.print(v)), name
			if w.spell != nil {
				other = w.spell(name)
			}
			switch {
			case other == name:
				parts = append(parts, right)
			case !w.beside:
				parts = append(parts, fmt.Sprintf(`"%s":%s`, other, w.print(v)))
			case w.first:
				parts = append(parts, fmt.Sprintf(`"%s":%s`, other, otherThan(v)), right)
			default:
				parts = append(parts, right, fmt.Sprintf(`"%s":%s`, other, otherThan(v)))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, v := range value {
			parts = append(parts, w.print(v))
		}
		return "[" + strings.Join(parts, ",") + "]"
	default:
		text, _ := json.Marshal(value)
		return string(text)
	}
}

// otherThan returns another value of the same type.
func otherThan(value any) string {
	switch value := value.(type) {
	case string:
		return `"other"`
	case float64:
		return "99"
	case bool:
		return fmt.Sprint(!value)
	case []any:
		return "[]"
	default:
		return "{}"
	}
}
