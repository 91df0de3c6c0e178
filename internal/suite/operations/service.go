package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// What Fill creates. All operations share it; one that needs more adds it in its prepare, such as the list with the name
// office. What an operation changes, another one may find changed, so each test of a write fills a fake of its own.
const (
	FirstTask = "task-1"
	FirstList = "11111111-1111-4111-8111-111111111111"
	filled    = 3 // number of tasks, of lists, and of entries per list
)

// What operations write.
const (
	NewEntry  = "2001:db8::7"
	NewObject = "https://www.example.com/app.css"
	oldEntry  = "192.0.2.1"
)

// Fill adds objects for every operation to a new fake, and returns it as a Service. The statistics come from
// testserver.Config.EventsPerSecond.
func Fill(srv *testserver.Server, c *webdelivery.Client) Service {
	for i := range filled {
		srv.AddTask(testserver.TaskSpec{ID: fmt.Sprint("task-", i+1)})
		id := fmt.Sprintf("%08d-1111-4111-8111-111111111111", (i+1)*11111111)
		srv.AddNetworkList(testserver.NetworkListSpec{ID: id, Entries: []string{oldEntry, "192.0.2.2", "192.0.2.3"}})
	}
	return Service{Server: srv, Client: c, Task: FirstTask, List: FirstList}
}

// firstEntry sets use.Entry and use.Value to id and value of the first entry of the list.
func firstEntry(ctx context.Context, s Service, use *Use) error {
	page, err := s.Client.NetworkLists.Entries(ctx, use.List, webdelivery.EntryOptions{Count: 1})
	switch {
	case err != nil:
		return err
	case len(page.Items) == 0:
		return errors.New("operations: the list is empty")
	}
	use.Entry, use.Value = page.Items[0].ID, page.Items[0].Entry
	return nil
}

// transaction submits a purge and sets use.Transaction to its id.
func transaction(ctx context.Context, s Service, use *Use) error {
	receipt, err := s.Client.Purge.Submit(ctx, purgeOf("https://www.example.com/old.css"))
	if err == nil {
		use.Transaction = receipt.TransactionID
	}
	return err
}

// isListed reports whether the list has the new entry.
func isListed(srv *testserver.Server, use *Use) bool {
	return slices.Contains(srv.Entries(use.List), NewEntry)
}

// isUnlisted reports whether the list lacks the entry that firstEntry found.
func isUnlisted(srv *testserver.Server, use *Use) bool {
	return !slices.Contains(srv.Entries(use.List), use.Value)
}

// isPurged reports whether the new object was purged.
func isPurged(srv *testserver.Server, _ *Use) bool {
	return slices.ContainsFunc(srv.Purged(), func(p testserver.Purge) bool {
		return slices.ContainsFunc(p.URIs, func(u testserver.PurgeURI) bool { return u.URIPattern == NewObject })
	})
}

func purgeOf(uri string) webdelivery.PurgeRequest {
	return webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact(uri)}}
}
