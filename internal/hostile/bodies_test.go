package hostile

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

// onePoll is a context that ends with the first poll of a wait, which would otherwise continue.
func onePoll(ctx context.Context) (context.Context, webdelivery.WaitOption) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, webdelivery.OnProgress(func(webdelivery.Progress) { cancel() })
}

// first returns the error of the first element of a sequence.
func first[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		return err
	}
	return nil
}

// If the body is not the expected resource, a call returns an error at once, whatever the framing of the body.
func TestBodiesThatAreSomethingElse(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	reads := map[string]func(c *webdelivery.Client) error{
		"Tasks.Get": func(c *webdelivery.Client) error { return only(c.Tasks.Get(ctx, "t1")) },
		"Tasks.All": func(c *webdelivery.Client) error {
			return first(c.Tasks.All(ctx, webdelivery.TaskListOptions{Status: "failed"}))
		},
		"NetworkLists.Get": func(c *webdelivery.Client) error { return only(c.NetworkLists.Get(ctx, "l1")) },
		"AllEntries with ReadAhead": func(c *webdelivery.Client) error {
			return first(c.NetworkLists.AllEntries(ctx, "l1", webdelivery.EntryOptions{}, webdelivery.ReadAhead(3)))
		},
		"Plan": func(c *webdelivery.Client) error {
			return only(c.NetworkLists.Plan(ctx, "l1", []string{"192.0.2.1"}, webdelivery.PlanOptions{}))
		},
		"Events.All":   func(c *webdelivery.Client) error { return first(c.Stats.Events.All(ctx, aQuery())) },
		"Events.Query": func(c *webdelivery.Client) error { return only(c.Stats.Events.Query(ctx, aQuery())) },
		"Tasks.Wait": func(c *webdelivery.Client) error {
			ctx, once := onePoll(ctx)
			return only(c.Tasks.Wait(ctx, "t1", once))
		},
		"Purge.Wait": func(c *webdelivery.Client) error {
			ctx, once := onePoll(ctx)
			return only(c.Purge.Wait(ctx, 7, once))
		},
	}
	long := strings.Repeat("under maintenance. ", 1000)
	for body, want := range map[string]error{
		`{}`:                                 webdelivery.ErrBadReply,
		`{"message":"under maintenance"}`:    webdelivery.ErrBadReply,
		`{"status":"maintenance"}`:           webdelivery.ErrBadReply,
		`<html>under maintenance</html>`:     webdelivery.ErrBadReply,
		``:                                   webdelivery.ErrBadReply,
		`null`:                               webdelivery.ErrBadReply,
		`{"code":503,"description":"later"}`: webdelivery.ErrServer,
		`{"description":"` + long + `","code":"503"}`: webdelivery.ErrServer,
	} {
		for _, f := range cutFramings() {
			for name, read := range reads {
				t.Run(fmt.Sprint(name, " ", f.name, " ", body[:min(len(body), 40)]), func(t *testing.T) {
					t.Parallel()
					s := &cutServer{framing: f, status: "200 OK", whole: body, cut: len(body)}
					assert.ErrorIs(t, read(s.start(t)), want)
				})
			}
		}
	}
}
