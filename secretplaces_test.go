package webdelivery_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// Places of a response from which a secret, or a piece of one, could reach an error unnoticed.

// An error quotes a value in full or not at all. If the value were cut before the secrets are removed, it could end
// in a piece of one. The padding lets any cut between 100 and 600 bytes fall into the password.
func TestNoValueIsCutBeforeItIsRedacted(t *testing.T) {
	t.Parallel()
	events := func(value string) string {
		return `{"columns":[{"name":"event_timestamp_ms"},{"name":"v"}],"rows":[["2026-11-20T00:00:00",` + value + `]],"total_results":1}`
	}
	for name, tt := range map[string]struct {
		body func(said string) string
		call func(*webdelivery.Client) error
	}{
		"an address": {func(said string) string { return events(`"` + said + `"`) }, lastOf[struct {
			V netip.Addr `stats:"v"`
		}]},
		"a number": {func(said string) string { return events(`"` + said + `"`) }, lastOf[struct {
			V float64 `stats:"v"`
		}]},
		"a time": {func(said string) string { return events(`"` + said + `"`) }, lastOf[struct {
			V time.Time `stats:"v"`
		}]},
		"total_results": {func(said string) string {
			return `{"columns":[{"name":"v"}],"total_results":"` + said + `","rows":[]}`
		}, queried},
		"columns": {func(said string) string { return `{"columns":"` + said + `","rows":[]}` }, queried},
		"a pointer to a syntax error": {func(said string) string {
			return `{"zzz":{"` + said + strings.Repeat("b", 300) + `":tru},"rows":[]}`
		}, queried},
		"a dimension": {func(said string) string { return `{"dimensions":[{"nam":"` + said + `"}]}` }, func(c *webdelivery.Client) error {
			_, err := c.Stats.Events.Dimensions(t.Context())
			return err
		}},
		"begin_time": {func(said string) string { return `{"id":"t1","begin_time":"` + said + `"}` }, func(c *webdelivery.Client) error {
			_, err := c.Tasks.Get(t.Context(), "t1")
			return err
		}},
		"transaction_id": {func(said string) string { return `{"code":201,"transaction_id":"` + said + `"}` }, func(c *webdelivery.Client) error {
			_, err := c.Purge.Submit(t.Context(), purgeOf(anObject))
			return err
		}},
		"an entry that comes twice": {func(said string) string {
			return `{"id":"l1","type":"IP","items":[{"id":"e1","entry":"` + said + `"},{"id":"e1","entry":"` + said + `"}],"total":2,"has_more":false,"page_count":1,"page_index":1}`
		}, func(c *webdelivery.Client) error {
			_, err := c.NetworkLists.Plan(t.Context(), listID, []string{"192.0.2.1"}, webdelivery.PlanOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for padding := range 60 {
				said := strings.Repeat("x", padding*10) + password + strings.Repeat(" ", 600)
				err := tt.call(always(t, []byte(tt.body(said))))
				require.Error(t, err)
				for inner := err; inner != nil; inner = errors.Unwrap(inner) {
					require.NotContains(t, inner.Error(), password[:9])
				}
				var syntax *jsontext.SyntacticError
				if errors.As(err, &syntax) {
					require.NotContains(t, string(syntax.JSONPointer), password[:9])
				}
				var paging *webdelivery.IncompleteError
				if errors.As(err, &paging) {
					require.NotContains(t, paging.Reason, password[:9])
				}
			}
		})
	}
}

func queried(c *webdelivery.Client) error {
	_, err := c.Stats.Events.Query(context.Background(), lastHour(10))
	return err
}

func lastOf[T any](c *webdelivery.Client) (last error) {
	for _, err := range webdelivery.Scan[T](c.Stats.Events.All(context.Background(), webdelivery.EventsQuery{
		Dimensions: []string{"v"}, Start: time.Now().Add(-time.Hour), End: time.Now(),
	})) {
		last = err
	}
	return last
}
