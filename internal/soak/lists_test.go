package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// pollTasks is the poll interval of deployments.
const pollTasks = 100 * time.Millisecond

// wantedCountries are the lists of countries that a read must return, in order of creation.
func (w *worker) wantedCountries(deprecated bool) []testserver.NetworkListSpec {
	return slices.DeleteFunc(slices.Clone(w.countries), func(l testserver.NetworkListSpec) bool { return l.Deprecated && !deprecated })
}

func (w *worker) isCountries(operation string, got webdelivery.NetworkList, want testserver.NetworkListSpec) {
	if got.ID != want.ID || got.Type != webdelivery.ListTypeGEO || got.Name != want.Name || got.Deprecated != want.Deprecated || got.List != nil {
		w.problem(operation, "%+v is not %+v", got, want)
	}
}

func (w *worker) listLists(ctx context.Context, c *webdelivery.Client) error {
	o := webdelivery.NetworkListOptions{
		Type: webdelivery.ListTypeGEO, Deprecated: w.IntN(2) == 0, Page: 1 + w.IntN(3), Count: 1 + w.IntN(12),
	}
	page, err := c.NetworkLists.List(ctx, o)
	if !w.read("NetworkLists.List", err) {
		return err
	}
	all := w.wantedCountries(o.Deprecated)
	from := min(len(all), (o.Page-1)*o.Count)
	want := all[from:min(len(all), from+o.Count)]
	if int(page.Total) != len(all) || len(page.Items) != len(want) {
		w.problem("NetworkLists.List", "%d of %d lists, and there are %d of %d", len(page.Items), page.Total, len(want), len(all))
		return nil
	}
	for i, l := range page.Items {
		w.isCountries("NetworkLists.List", l, want[i])
	}
	return nil
}

func (w *worker) allLists(ctx context.Context, c *webdelivery.Client) error {
	o := webdelivery.NetworkListOptions{Type: webdelivery.ListTypeGEO, Deprecated: w.IntN(2) == 0, Count: 1 + w.IntN(12)}
	want := w.wantedCountries(o.Deprecated)
	n := 0
	for l, err := range c.NetworkLists.All(ctx, o) {
		if err != nil {
			w.read("NetworkLists.All", err)
			return err
		}
		if n < len(want) {
			w.isCountries("NetworkLists.All", l, want[n])
		}
		n++
	}
	if w.read("NetworkLists.All", nil); n != len(want) {
		w.problem("NetworkLists.All", "%d lists, and there are %d", n, len(want))
	}
	return nil
}

func (w *worker) getList(ctx context.Context, c *webdelivery.Client) error {
	get, want := c.NetworkLists.Get, w.stillTexts
	if w.IntN(2) == 0 {
		get, want = c.NetworkLists.GetSummary, nil
	}
	l, err := get(ctx, w.still)
	if w.read("NetworkLists.Get", err) && (l.ID != w.still || l.Description != "as it was" || !slices.Equal(l.List, want)) {
		w.problem("NetworkLists.Get", "%s %q with %d entries", l.ID, l.Description, len(l.List))
	}
	return err
}

func (w *worker) listEntries(ctx context.Context, c *webdelivery.Client) error {
	page, count := 1+w.IntN(12), 1+w.IntN(400)
	got, err := c.NetworkLists.Entries(ctx, w.still, webdelivery.EntryOptions{Page: page, Count: count})
	if !w.read("NetworkLists.Entries", err) {
		return err
	}
	from := min(len(w.stillTexts), (page-1)*count)
	to := min(len(w.stillTexts), from+count)
	if int(got.Total) != len(w.stillTexts) || len(got.Items) != to-from {
		w.problem("NetworkLists.Entries", "page %d of %d entries each has %d of %d", page, count, len(got.Items), got.Total)
		return nil
	}
	for i, e := range got.Items {
		w.isStill("NetworkLists.Entries", e, from+i)
	}
	return nil
}

func (w *worker) isStill(operation string, e webdelivery.NetworkListEntry, i int) {
	if e.Entry != w.stillTexts[i] || e.ID != w.stillIDs[i] || e.AddedBy != "operator" {
		w.problem(operation, "entry %d is %+v, not %s", i, e, w.stillTexts[i])
	}
}

func (w *worker) allEntries(ctx context.Context, c *webdelivery.Client) error {
	operation, options := "NetworkLists.AllEntries", []webdelivery.ReadOption(nil)
	if w.IntN(2) == 0 {
		operation, options = "AllEntries, ReadAhead", []webdelivery.ReadOption{webdelivery.ReadAhead(1 + w.IntN(6))}
	}
	n, stop := 0, len(w.stillTexts)
	if w.IntN(5) == 0 {
		stop = 1 + w.IntN(stop)
	}
	for e, err := range c.NetworkLists.AllEntries(ctx, w.still, webdelivery.EntryOptions{Count: 100 + w.IntN(900)}, options...) {
		if err != nil {
			w.read(operation, err)
			return err
		}
		if n == len(w.stillTexts) {
			w.problem(operation, "more than %d entries", n)
			return nil
		}
		w.isStill(operation, e, n)
		if n++; n == stop && stop < len(w.stillTexts) {
			break
		}
	}
	if w.read(operation, nil); n != stop {
		w.problem(operation, "%d entries, and there are %d", n, len(w.stillTexts))
	}
	return nil
}

func (w *worker) getEntry(ctx context.Context, c *webdelivery.Client) error {
	id := w.stillIDs[w.IntN(len(w.stillIDs))]
	e, err := c.NetworkLists.GetEntry(ctx, w.still, id)
	if w.read("NetworkLists.GetEntry", err) && (e.ID != id || e.Type != webdelivery.ListTypeIP) {
		w.problem("NetworkLists.GetEntry", "%+v", e)
	}
	return err
}

// someShared returns a list that other workers change at the same time.
func (w *worker) someShared() string { return w.shared[w.IntN(len(w.shared))] }

func (w *worker) addEntries(ctx context.Context, c *webdelivery.Client) error {
	list, texts := w.someShared(), w.addresses(1+w.IntN(4))
	result, err := c.NetworkLists.AddEntries(ctx, list, texts)
	outcome := w.wrote("NetworkLists.AddEntries", err)
	if err == nil && !slices.Equal(result.Added, texts) {
		w.problem("NetworkLists.AddEntries", "added %v instead of %v", result.Added, texts)
	}
	w.expect(w.entries(list), claimed("NetworkLists.AddEntries", list, texts, outcome, false, err))
	return err
}

// addByDo does the same with Do.
func (w *worker) addByDo(ctx context.Context, c *webdelivery.Client) error {
	list, text := w.someShared(), w.address()
	err := c.Do(ctx, http.MethodPost, "/config/networklists/"+list+"/entries", []map[string]string{{"entry": text}}, nil)
	w.expect(w.entries(list), claimed("Do POST", list, []string{text}, w.wrote("Do POST", err), false, err))
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

func (w *worker) clearList(ctx context.Context, c *webdelivery.Client) error {
	list, texts := w.ownList(1 + w.IntN(5))
	defer w.leave(list)
	_, err := c.NetworkLists.ClearEntries(ctx, list)
	outcome := w.wrote("NetworkLists.ClearEntries", err)
	if w.srv.Entries(list) == nil {
		w.problem("NetworkLists.ClearEntries", "the list is gone: %v", err)
	}
	w.expect(w.entries(list), claimed("NetworkLists.ClearEntries", list, texts, outcome, true, err))
	return err
}

func (w *worker) deleteList(ctx context.Context, c *webdelivery.Client) error {
	list, texts := w.ownList(1)
	defer w.leave(list)
	_, err := c.NetworkLists.Delete(ctx, list)
	outcome := w.wrote("NetworkLists.Delete", err)
	if outcome == webdelivery.OutcomeApplied && w.srv.Entries(list) != nil {
		w.problem("NetworkLists.Delete", "the list is still there: %v", err)
	}
	w.expect(w.entries(list), claimed("NetworkLists.Delete", list, texts, outcome, true, err))
	return err
}

// addManyEntries adds entries that need three requests. The error must report the true outcome of each entry.
func (w *worker) addManyEntries(ctx context.Context, c *webdelivery.Client) error {
	if w.IntN(4) != 0 || !w.many.TryLock() {
		return nil
	}
	defer w.many.Unlock()
	list, _ := w.ownList(0)
	defer w.leave(list)
	texts := w.addresses(10_000 + 1 + w.IntN(300))
	_, err := c.NetworkLists.AddEntries(ctx, list, texts)
	operation := "AddEntries, three calls"
	outcome := w.wrote(operation, err)
	var partial *webdelivery.PartialError
	if !errors.As(err, &partial) {
		if err != nil {
			w.problem(operation, "no *PartialError: %v", err)
		}
		w.expect(w.entries(list), claimed(operation, list, texts, outcome, false, err))
		return err
	}
	if told := slices.Concat(partial.Accepted, partial.Unknown, partial.NotAccepted); !slices.Equal(told, texts) {
		w.problem(operation, "the error tells of %d entries, and %d were given", len(told), len(texts))
	}
	if nothing := len(partial.Accepted)+len(partial.Unknown) == 0; nothing != (outcome == webdelivery.OutcomeNotApplied) {
		w.problem(operation, "%v with %d accepted and %d unknown", outcome, len(partial.Accepted), len(partial.Unknown))
	}
	w.expect(w.entries(list), slices.Concat(
		claimed(operation, list, partial.Accepted, webdelivery.OutcomeApplied, false, err),
		claimed(operation, list, partial.NotAccepted, webdelivery.OutcomeNotApplied, false, err)))
	return err
}

// planAndApply brings a list to a desired state. After a failure, the list is between the two states, as the result
// reports.
func (w *worker) planAndApply(ctx context.Context, c *webdelivery.Client) error {
	list, before := w.ownList(2 + w.IntN(12))
	defer w.leave(list)
	keep := w.IntN(len(before) + 1)
	desired := append(w.addresses(w.IntN(12)), before[:keep]...)
	plan, err := c.NetworkLists.Plan(ctx, list, desired, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll})
	if !w.read("NetworkLists.Plan", err) {
		w.isList("NetworkLists.Plan", list, before)
		return err
	}
	if len(plan.Add) != len(desired)-keep || len(plan.Remove) != len(before)-keep || plan.Keep != keep {
		w.problem("NetworkLists.Plan", "from %v to %v: %v", before, desired, plan)
	}
	result, err := c.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: w.IntN(2) == 0}, webdelivery.PollEvery(pollTasks))
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

// isList compares all entries of a list.
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
