package applying

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// addition is a part of the added entries and its response.
type addition struct {
	texts    []string
	response Added
}

// maxAttempts is how often a part is sent at most.
const maxAttempts = 3

// add adds one part. If the outcome is unknown, it reads the list to find out. With Wait, the list is not enough: it
// may show an entry that is not in effect. So add first sends the part once more to get its task (open point 26).
func (r *run) add(ctx context.Context, texts []string) error {
	for attempt := 1; ; attempt++ {
		response, err := r.List.Add(ctx, texts)
		if err == nil {
			return r.accepted(addition{texts, response})
		}
		again := r.Wait && attempt == 2 // the first attempt may have added the entries already
		refused := r.NotApplied(err)
		if refused && !again {
			return err
		}
		r.uncertain = true
		switch {
		case ctx.Err() != nil || attempt == maxAttempts:
			return err
		case r.Wait && attempt == 1:
			continue
		}
		is, _, readErr := r.List.Read(ctx)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		missing := is.Lacking(texts)
		r.done("adding", &r.result.Added, len(texts)-len(missing), "", nil)
		if len(missing) > 0 && refused {
			return err
		}
		if texts = missing; len(texts) == 0 {
			return nil
		}
	}
}

// accepted records what a response proves. A response that neither names a task nor shows the entries proves nothing:
// it may come from a proxy.
func (r *run) accepted(added addition) error {
	switch {
	case added.response.Task != "":
		r.done("adding", &r.result.Added, len(added.texts), added.response.Task, &r.added)
		return added.response.Failed
	case len(ipset.MeaningsOf(added.response.Shown).Lacking(added.texts)) == 0:
		r.done("adding", &r.result.Added, len(added.texts), "", nil)
	default:
		r.unproven = append(r.unproven, added)
		r.report("adding")
	}
	return nil
}

// additionsHold returns nil if removals may rely on the additions so far.
func (r *run) additionsHold(ctx context.Context) error {
	if err := r.await(ctx, &r.added); err != nil || len(r.unproven) == 0 {
		return err
	}
	is, _, err := r.List.Read(ctx)
	if err != nil {
		return err
	}
	return r.prove(is)
}

// prove looks up the unproven additions in the list. It returns the error of the first one that is not in the list.
func (r *run) prove(is ipset.Meanings) error {
	var failed error
	for _, added := range r.unproven {
		missing := is.Lacking(added.texts)
		r.result.Added += len(added.texts) - len(missing)
		if len(missing) > 0 && failed == nil {
			failed = added.response.Unproven(fmt.Sprintf("it names no task, and %d of %d added entries are not in the list, for example %s",
				len(missing), len(added.texts), redact.Line(missing[0])))
		}
	}
	if failed != nil {
		r.uncertain = true
	}
	r.unproven = nil
	return failed
}

// removeAfter removes the entries of a step. If the step relies on additions, it makes sure of them first.
func (r *run) removeAfter(ctx context.Context, step listorder.Step) error {
	if step.Relies {
		if err := r.additionsHold(ctx); err != nil {
			return err
		}
	}
	return r.remove(ctx, r.Remove[step.From:step.To])
}

// remove removes entries concurrently. After the first failure it starts no further removal, but waits for those under
// way.
func (r *run) remove(ctx context.Context, entries []Entry) error {
	var group errgroup.Group
	group.SetLimit(r.AtOnce)
	var failed error
	for _, e := range entries {
		group.Go(func() error {
			r.Guard(func() error {
				r.turn.Lock()
				stop := failed != nil
				r.turn.Unlock()
				if stop {
					return nil
				}
				task, err := r.List.Remove(ctx, e.ID)
				if err != nil {
					return err
				}
				r.turn.Lock()
				defer r.turn.Unlock()
				r.done("removing", &r.result.Removed, 1, task, &r.removed)
				return nil
			}, func(err error, notApplied bool) {
				if err == nil {
					return
				}
				r.turn.Lock()
				defer r.turn.Unlock()
				r.uncertain = r.uncertain || !notApplied
				if failed == nil {
					failed = err
				}
			})
			return nil
		})
	}
	_ = group.Wait()
	return failed
}
