package soak

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// others are the operations without their own line.
func others() []operations.Operation {
	return slices.DeleteFunc(operations.All(), func(op operations.Operation) bool {
		return slices.ContainsFunc(lines(), func(line operation) bool { return slices.Contains(line.of, op.Name) })
	})
}

// anyOther runs one of the others on its own objects. It knows the operation only from internal/suite/operations.
func (w *worker) anyOther(ctx context.Context, c *webdelivery.Client) error {
	if len(w.others) == 0 {
		return nil
	}
	op := w.others[w.IntN(len(w.others))]
	list, _ := w.ownList(3)
	defer w.leave(list)
	use, err := op.Prepare(ctx, operations.Service{Server: w.srv, Client: w.quiet, Task: taskID, List: list})
	if err != nil {
		return err // the weather can hit this too
	}
	err = op.Run(ctx, c, use)
	switch {
	case op.Waits:
		w.awaited(op.String(), err)
	case !op.Changes():
		w.read(op.String(), err)
	default:
		outcome, applied := w.wrote(op.String(), err), op.Applied(w.srv, use)
		if err == nil && !applied || outcome != webdelivery.OutcomeUnknown && applied != (outcome == webdelivery.OutcomeApplied) {
			w.problem(op.String(), "%v, and at the service it was applied: %t: %v", outcome, applied, err)
		}
	}
	return err
}

// Every operation is drawn, by its own line or by anyOther.
func TestEveryOperationIsDrawn(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, op := range operations.All() {
		names[op.Name] = true
		for _, name := range op.Also {
			names[name] = true
		}
	}
	for _, line := range lines() {
		for _, name := range line.of {
			assert.True(t, names[name], "a line of internal/soak names %s, which internal/suite/operations does not list", name)
		}
	}
	for _, op := range others() {
		assert.False(t, op.Kind == operations.Purges || op.Kind == operations.LogsIn,
			"%s needs a line of its own in internal/soak: it purges or logs in, and many at once are not told apart", op)
	}
}
