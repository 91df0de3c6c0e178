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

// addition is a part that was added, and its response.
type addition struct {
	texts    []string
	response Added
}

// settlements is how often a part is sent at most.
const settlements = 3

// add adds one part. When nobody can know whether the service took it, the list is read to find out. With Wait that is
// not enough, as the list may show what is not in effect: the part is sent once more for its task (open point 26).
func (r *run) add(ctx context.Context, texts []string) error {
	for try := 1; ; try++ {
		response, err := r.List.Add(ctx, texts)
		if err == nil {
			return r.accepted(addition{texts, response})
		}
		again := r.Wait && try == 2 // of what may be in the list
		refused := r.NotApplied(err)
		if refused && !again {
			return err
		}
		r.uncertain = true
		switch {
		case ctx.Err() != nil || try == settlements:
			return err
		case r.Wait && try == 1:
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

// accepted takes what a response proves: it names a task, or shows the entries. Any other was perhaps not written by
// what keeps the list.
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

// additionsHold returns nil if removals may rely on what was added so far.
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

// prove looks for additions in the list whose responses proved nothing. A response without any sign of its entries,
// there or in the list, is of no use.
func (r *run) prove(is ipset.Meanings) error {
	var failed error
	for _, added := range r.unproven {
		missing := is.Lacking(added.texts)
		r.result.Added += len(added.texts) - len(missing)
		if len(missing) > 0 && failed == nil {
			failed = added.response.Unproven(fmt.Sprintf("it names no task, and of %d added entries %d are not in the list, for example %s",
				len(added.texts), len(missing), redact.Line(missing[0])))
		}
	}
	if failed != nil {
		r.uncertain = true
	}
	r.unproven = nil
	return failed
}

// removeAfter removes the entries of a step, as soon as it may rely on the additions before it.
func (r *run) removeAfter(ctx context.Context, step listorder.Step) error {
	if step.Relies {
		if err := r.additionsHold(ctx); err != nil {
			return err
		}
	}
	return r.remove(ctx, r.Remove[step.From:step.To])
}

// remove removes entries, some at once. The first failure stops those that have not begun; what is under way is seen
// through.
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
