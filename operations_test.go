package webdelivery_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// column is a kind of operation as the page on reliability sorts them: by what repeating them does, and by what has
// been handed out already when a fault comes.
type column int

const (
	colRead column = iota
	colPages
	colRows
	colDelete
	colPurge
	colWrite
	colLogin
	columns
)

func (c column) String() string {
	return [...]string{"Read", "Pages", "Rows", "DELETE", "Purge", "Other write", "Login"}[c]
}

// operationOf is one operation of the SDK, ready to be disturbed: which of its requests a fault can hit, and how it is
// seen at the service whether a write was carried out.
type operationOf struct {
	name     string
	column   column
	method   string
	path     string // below the base, of the requests that can be hit
	requests int    // how many these are when all goes well; 0: that depends on how long things take
	before   int    // how many others it makes first
	items    int    // how many items or rows it gives
	bodiless bool   // its replies have no body
	inOrder  bool   // its requests follow each other, so that those before a fault are known
	session  bool   // made by a client that logs in by itself
	shared   bool   // its requests go on without who gave up
	waits    bool   // for something that may still come about when the call has failed

	// prepare reads what the call needs, before any fault is there.
	prepare func(f *fixture) prepared
}

// prepared is a call to be made once.
type prepared struct {
	call func(ctx context.Context, c *webdelivery.Client) (items int, err error)
	done func() bool                     // whether the service carried out the write; nil for what only reads
	end  func(ctx context.Context) error // ends what the call left running; nil for nothing
}

const (
	reliableList  = "11111111-1111-4111-8111-111111111111"
	reliableTasks = 3
	eventsAsked   = 20
)

// inReliableService runs a test in a service that has something for every operation.
func inReliableService(t *testing.T, s setup, test func(f *fixture)) {
	t.Helper()
	s.server.EventsPerSecond = 0.01
	inFakeTime(t, s, func(f *fixture) {
		for i := range reliableTasks {
			f.srv.AddTask(testserver.TaskSpec{ID: fmt.Sprint("task-", i+1)})
			id := fmt.Sprintf("%08d-1111-4111-8111-111111111111", (i+1)*11111111)
			f.srv.AddNetworkList(testserver.NetworkListSpec{ID: id, Entries: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}})
		}
		test(f)
	})
}

// reading prepares a call that gives one thing.
func reading[T any](call func(ctx context.Context, c *webdelivery.Client) (T, error)) func(*fixture) prepared {
	return func(*fixture) prepared {
		return prepared{call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
			_, err := call(ctx, c)
			return 0, err
		}}
	}
}

// iterating prepares a call that gives one thing after the other.
func iterating[T any](call func(ctx context.Context, c *webdelivery.Client) iter.Seq2[T, error]) func(*fixture) prepared {
	return func(*fixture) prepared {
		return prepared{call: func(ctx context.Context, c *webdelivery.Client) (items int, err error) {
			for _, err := range call(ctx, c) {
				if err != nil {
					return items, err
				}
				items++
			}
			return items, nil
		}}
	}
}

// lastHour asks for events of which there are more than are asked for.
func lastHour(limit int) webdelivery.EventsQuery {
	now := time.Now()
	return webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimClientIP}, Start: now.Add(-3 * time.Hour), End: now, Limit: limit,
	}
}

// firstEntry is the id of the list's first entry.
func (f *fixture) firstEntry() string {
	f.Helper()
	page, err := f.client.NetworkLists.Entries(f.Context(), reliableList, webdelivery.EntryOptions{})
	require.NoError(f, err)
	return page.Items[0].ID
}

func (f *fixture) purged(uri string) bool {
	return slices.ContainsFunc(f.srv.Purged(), func(p testserver.Purge) bool {
		return slices.ContainsFunc(p.URIs, func(u testserver.PurgeURI) bool { return u.URIPattern == uri })
	})
}

func (f *fixture) listed(entry string) bool {
	return slices.Contains(f.srv.Entries(reliableList), entry)
}

// transaction is a purge that was made before.
func (f *fixture) transaction() int64 {
	f.Helper()
	receipt, err := f.client.Purge.Submit(f.Context(), purgeOf(anObject))
	require.NoError(f, err)
	return receipt.TransactionID
}

const (
	aList     = "/config/networklists/" + reliableList
	newEntry  = "2001:db8::7"
	newObject = "https://www.example.com/new.css"
)

// operationsOf gives every operation that the matrix of faults is made with.
func operationsOf() []operationOf {
	const get, post, remove = http.MethodGet, http.MethodPost, http.MethodDelete
	patiently := webdelivery.PollEvery(time.Second)
	return []operationOf{
		{
			name: "Tasks.Get", column: colRead, method: get, path: "/tasks/task-1", requests: 1,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Task, error) {
				return c.Tasks.Get(ctx, "task-1")
			}),
		},
		{
			name: "Tasks.List", column: colRead, method: get, path: "/tasks", requests: 1,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Page[webdelivery.Task], error) {
				return c.Tasks.List(ctx, webdelivery.TaskListOptions{})
			}),
		},
		{
			name: "Tasks.Wait", column: colRead, method: get, path: "/tasks/*", inOrder: true, waits: true,
			prepare: func(f *fixture) prepared {
				id := f.srv.AddTask(testserver.TaskSpec{Duration: 10 * time.Minute})
				return reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Task, error) {
					return c.Tasks.Wait(ctx, id, patiently)
				})(f)
			},
		},
		{
			name: "Purge.Status", column: colRead, method: get, path: "/transactions/*", requests: 1,
			prepare: func(f *fixture) prepared {
				id := f.transaction()
				return reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Transaction, error) {
					return c.Purge.Status(ctx, id)
				})(f)
			},
		},
		{
			name: "Purge.Wait", column: colRead, method: get, path: "/transactions/*", inOrder: true, waits: true,
			prepare: func(f *fixture) prepared {
				id := f.transaction()
				return reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Transaction, error) {
					return c.Purge.Wait(ctx, id, patiently)
				})(f)
			},
		},
		{
			name: "Events.Query", column: colRead, method: get, path: "/stats/security/events/data", requests: 1,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Result, error) {
				return c.Stats.Events.Query(ctx, lastHour(eventsAsked))
			}),
		},
		{
			name: "Events.Dimensions", column: colRead, method: get, path: "/stats/security/events/dimensions", requests: 1,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Names, error) {
				return c.Stats.Events.Dimensions(ctx)
			}),
		},
		{
			name: "Events.Head", column: colRead, method: http.MethodHead, path: "/stats/security/events", requests: 1, bodiless: true,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (http.Header, error) { return c.Stats.Events.Head(ctx) }),
		},
		{
			name: "NetworkLists.Get", column: colRead, method: get, path: aList, requests: 1,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.NetworkList, error) {
				return c.NetworkLists.Get(ctx, reliableList)
			}),
		},
		{
			name: "NetworkLists.GetEntry", column: colRead, method: get, path: aList + "/entries/*", requests: 1,
			prepare: func(f *fixture) prepared {
				id := f.firstEntry()
				return reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.NetworkListEntryInfo, error) {
					return c.NetworkLists.GetEntry(ctx, reliableList, id)
				})(f)
			},
		},
		{
			name: "Do GET", column: colRead, method: get, path: "/tasks/task-1", requests: 1,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (out map[string]any, err error) {
				return out, c.Do(ctx, get, "/tasks/task-1", nil, &out)
			}),
		},
		{
			name: "Tasks.All", column: colPages, method: get, path: "/tasks", requests: 3, items: 3, inOrder: true,
			prepare: iterating(func(ctx context.Context, c *webdelivery.Client) iter.Seq2[webdelivery.Task, error] {
				return c.Tasks.All(ctx, webdelivery.TaskListOptions{Count: 1})
			}),
		},
		{
			name: "NetworkLists.All", column: colPages, method: get, path: "/config/networklists", requests: 3, items: 3, inOrder: true,
			prepare: iterating(func(ctx context.Context, c *webdelivery.Client) iter.Seq2[webdelivery.NetworkList, error] {
				return c.NetworkLists.All(ctx, webdelivery.NetworkListOptions{Count: 1})
			}),
		},
		{
			name: "AllEntries", column: colPages, method: get, path: aList + "/entries", requests: 3, items: 3, inOrder: true,
			prepare: iterating(func(ctx context.Context, c *webdelivery.Client) iter.Seq2[webdelivery.NetworkListEntry, error] {
				return c.NetworkLists.AllEntries(ctx, reliableList, webdelivery.EntryOptions{Count: 1})
			}),
		},
		{
			name: "AllEntries with ReadAhead", column: colPages, method: get, path: aList + "/entries", requests: 3, items: 3,
			prepare: iterating(func(ctx context.Context, c *webdelivery.Client) iter.Seq2[webdelivery.NetworkListEntry, error] {
				return c.NetworkLists.AllEntries(ctx, reliableList, webdelivery.EntryOptions{Count: 1}, webdelivery.ReadAhead(4))
			}),
		},
		{
			name: "Events.Rows", column: colRows, method: get, path: "/stats/security/events/data", requests: 1, items: eventsAsked,
			prepare: iterating(func(ctx context.Context, c *webdelivery.Client) iter.Seq2[webdelivery.Row, error] {
				return c.Stats.Events.Rows(ctx, lastHour(eventsAsked))
			}),
		},
		{
			name: "DeleteEntry", column: colDelete, method: remove, path: aList + "/*", requests: 1,
			prepare: func(f *fixture) prepared {
				id, entry := f.firstEntry(), "192.0.2.1"
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						_, err := c.NetworkLists.DeleteEntry(ctx, reliableList, id)
						return 0, err
					},
					done: func() bool { return !f.listed(entry) },
				}
			},
		},
		{
			name: "NetworkLists.Delete", column: colDelete, method: remove, path: aList, requests: 1, bodiless: true,
			prepare: func(f *fixture) prepared {
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						_, err := c.NetworkLists.Delete(ctx, reliableList)
						return 0, err
					},
					done: func() bool { return f.srv.Entries(reliableList) == nil },
				}
			},
		},
		{
			name: "Purge.Submit", column: colPurge, method: post, path: "/cache/purge", requests: 1,
			prepare: func(f *fixture) prepared {
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						_, err := c.Purge.Submit(ctx, purgeOf(newObject))
						return 0, err
					},
					done: func() bool { return f.purged(newObject) },
				}
			},
		},
		{
			name: "PurgeQueue.Purge", column: colPurge, shared: true, method: post, path: "/cache/purge", requests: 1,
			prepare: func(f *fixture) prepared {
				var queue *webdelivery.PurgeQueue
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						queue = c.Purge.NewQueue(webdelivery.QueueOptions{Action: webdelivery.ActionPurge})
						_, err := queue.Purge(ctx, webdelivery.Exact(newObject))
						return 0, err
					},
					done: func() bool { return f.purged(newObject) },
					end:  func(ctx context.Context) error { return queue.Close(ctx) },
				}
			},
		},
		{
			name: "AddEntries", column: colWrite, method: post, path: aList + "/entries", requests: 1,
			prepare: func(f *fixture) prepared {
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						_, err := c.NetworkLists.AddEntries(ctx, reliableList, []string{newEntry})
						return 0, err
					},
					done: func() bool { return f.listed(newEntry) },
				}
			},
		},
		{
			name: "ClearEntries", column: colWrite, method: post, path: aList + "/entries/deletions", requests: 1, before: 1,
			prepare: func(f *fixture) prepared {
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						_, err := c.NetworkLists.ClearEntries(ctx, reliableList)
						return 0, err
					},
					done: func() bool { return len(f.srv.Entries(reliableList)) == 0 },
				}
			},
		},
		{
			name: "Sessions.Create", column: colLogin, method: post, path: "/sessions", requests: 1,
			prepare: func(f *fixture) prepared {
				return prepared{
					call: func(ctx context.Context, c *webdelivery.Client) (int, error) {
						_, err := c.Sessions.Create(ctx)
						return 0, err
					},
					done: func() bool { return f.srv.Logins() > 0 },
				}
			},
		},
		{
			name: "the login of a session", column: colLogin, method: post, path: "/sessions", requests: 1, session: true,
			prepare: reading(func(ctx context.Context, c *webdelivery.Client) (*webdelivery.Task, error) {
				return c.Tasks.Get(ctx, "task-1")
			}),
		},
	}
}
