package webdelivery

import (
	"context"
	"fmt"

	"github.com/webdelivery/webdelivery-go/internal/listentries"
)

// readDesired reads the entries before the list is read, and refuses entries that no list can hold. Of entries with
// the same meaning it keeps the first.
func readDesired(ctx context.Context, texts []string, merge bool) (*listentries.Desired, error) {
	var bad problems
	d, err := listentries.Desire(ctx, texts, maxListEntries, bad.entry("desired", len(texts)))
	if err != nil {
		return nil, &changeError{fmt.Errorf("plan: %w", err), OutcomeNotApplied}
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	if merge {
		d.Aggregate()
	}
	if n := d.Size(); n > maxListEntries {
		return nil, invalid("desired", "%d entries are more than the %d that a list can hold", n, maxListEntries)
	}
	return d, nil
}
