package soak

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func (w *worker) allEntries(ctx context.Context, c *webdelivery.Client) error {
	operation, options := "NetworkLists.AllEntries", webdelivery.EntryOptions{Count: 100 + w.IntN(900)}
	if w.IntN(2) == 0 {
		operation, options.ReadAhead = "AllEntries, ReadAhead", 1+w.IntN(6)
	}
	return arrive(w, operation, c.NetworkLists.AllEntries(ctx, w.still, options), w.stillEntries, func(e webdelivery.NetworkListEntry, want entry) bool {
		return e.Entry == want.text && e.ID == want.id && e.AddedBy == "operator"
	})
}

// arrive compares items as they arrive. It ends one sequence in five early.
func arrive[T, W any](w *worker, operation string, items iter.Seq2[T, error], want []W, is func(T, W) bool) error {
	n, stop := 0, -1
	if w.IntN(5) == 0 {
		stop = 1 + w.IntN(len(want))
	}
	for item, err := range items {
		if err != nil {
			w.read(operation, err)
			return err
		}
		if n == len(want) || !is(item, want[n]) {
			w.problem(operation, "item %d of %d is %+v", n, len(want), item)
			return nil
		}
		if n++; n == stop {
			break
		}
	}
	if w.read(operation, nil); n != stop && n != len(want) {
		w.problem(operation, "%d items, and there are %d", n, len(want))
	}
	return nil
}

// someShared returns a list that other workers change at the same time.
func (w *worker) someShared() string { return w.shared[w.IntN(len(w.shared))] }

func (w *worker) addEntries(ctx context.Context, c *webdelivery.Client) error {
	list, texts := w.someShared(), w.addresses(1+w.IntN(4))
	_, err := c.NetworkLists.AddEntries(ctx, list, texts)
	outcome := w.wrote("NetworkLists.AddEntries", err)
	w.expect(w.entries(list), claimed("NetworkLists.AddEntries", list, texts, outcome, false, err))
	return err
}

// deleteEntry deletes an entry that no other worker deletes, with its method or with Do. If there are no more entries,
// it adds some.
func (w *worker) deleteEntry(ctx context.Context, c *webdelivery.Client) error {
	i := int(w.nextDoom.Add(1)) - 1
	if i >= len(w.doomed) {
		return w.addEntries(ctx, c)
	}
	e, operation := w.doomed[i], "NetworkLists.DeleteEntry"
	var err error
	if w.IntN(3) == 0 {
		operation = "Do DELETE"
		err = c.Do(ctx, http.MethodDelete, "/config/networklists/"+e.list+"/"+e.id, nil, nil)
	} else {
		_, err = c.NetworkLists.DeleteEntry(ctx, e.list, e.id)
	}
	w.expect(w.entries(e.list), claimed(operation, e.list, []string{e.text}, w.wrote(operation, err), true, err))
	return err
}

// ownList creates a list that only this worker knows.
func (w *worker) ownList(size int) (id string, texts []string) {
	texts = w.addresses(size)
	return w.srv.AddNetworkList(testserver.NetworkListSpec{Name: "own", Entries: texts}), texts
}

// planAndApply brings a list to a desired state. After a failure, the list is between the two states, as the result
// reports.
func (w *worker) planAndApply(ctx context.Context, c *webdelivery.Client) error {
	list, before := w.ownList(2 + w.IntN(12))
	defer w.leave(list)
	keep := w.IntN(len(before) + 1)
	desired := append(w.addresses(w.IntN(12)), before[:keep]...)
	plan, err := c.NetworkLists.Plan(ctx, list, desired, webdelivery.PlanOptions{MaxRemove: -1})
	if !w.read("NetworkLists.Plan", err) {
		w.isList("NetworkLists.Plan", list, before)
		return err
	}
	if len(plan.Add) != len(desired)-keep || len(plan.Remove) != len(before)-keep || plan.Keep != keep {
		w.problem("NetworkLists.Plan", "from %v to %v: %v", before, desired, plan)
	}
	result, err := c.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: w.IntN(2) == 0})
	switch outcome := w.wrote("NetworkLists.Apply", err); {
	case err == nil:
		if result.Size != len(desired) {
			w.problem("NetworkLists.Apply", "size %d, and %d are desired", result.Size, len(desired))
		}
		w.isList("NetworkLists.Apply", list, desired)
	case outcome == webdelivery.OutcomeNotApplied:
		w.isList("NetworkLists.Apply, not applied", list, before)
	default:
		w.isBetween(list, before[:keep], plan, result, err)
	}
	return err
}

func (w *worker) isList(operation, list string, want []string) {
	if got := w.srv.Entries(list); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		w.problem(operation, "the list holds %v instead of %v", got, want)
	}
}

// isBetween checks the list after a failed Apply.
func (w *worker) isBetween(list string, keep []string, plan *webdelivery.Plan, result *webdelivery.ApplyResult, err error) {
	has := w.entries(list)
	var claims []claim
	if keep != nil {
		claims = claimed("NetworkLists.Apply", list, keep, webdelivery.OutcomeApplied, false, err)
	}
	w.expect(has, claims)
	added, removed := 0, 0
	for _, text := range plan.Add {
		if has[text] {
			added++
		}
	}
	for _, e := range plan.Remove {
		if !has[e.Entry] {
			removed++
		}
	}
	if unexpected := len(has) - len(keep) - added - (len(plan.Remove) - removed); unexpected != 0 {
		w.problem("NetworkLists.Apply", "%d entries of nobody's: %v", unexpected, err)
	}
	if said := fmt.Sprintf("added %d, removed %d", result.Added, result.Removed); result.Added > added || result.Removed > removed {
		w.problem("NetworkLists.Apply", "it said %s, and there were %d and %d: %v", said, added, removed, err)
	}
}
