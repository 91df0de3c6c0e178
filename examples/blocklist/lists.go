package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// plan compares the feeds with the list.
func (set *settings) plan(ctx context.Context, lists *webdelivery.NetworkListsService) (*webdelivery.Plan, error) {
	var entries []entry
	for _, feed := range set.feeds {
		more, err := set.reader.read(ctx, feed)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	desired := make([]string, len(entries))
	for i, e := range entries {
		desired[i] = e.text
	}
	id, err := find(ctx, lists, set.list)
	if err != nil {
		return nil, err
	}
	plan, err := lists.Plan(ctx, id, desired, set.options)
	if errors.Is(err, webdelivery.ErrInvalid) {
		err = &program.Exit{Code: program.Failed, Err: located(err, entries)} // the feed's fault, not the command line's
	}
	return plan, err
}

// find gives the id of the list that has this id, or alone has this name.
func find(ctx context.Context, lists *webdelivery.NetworkListsService, idOrName string) (string, error) {
	var ids []string
	for list, err := range lists.All(ctx, webdelivery.NetworkListOptions{Deprecated: true, Count: 100}) {
		switch {
		case err != nil:
			return "", err
		case list.ID == idOrName:
			return list.ID, nil
		case list.Name == idOrName:
			ids = append(ids, list.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("no list has the id or the name %q", idOrName)
	case 1:
		return ids[0], nil
	default:
		return "", fmt.Errorf("%d lists are called %q; their ids are %s", len(ids), idOrName, strings.Join(ids, ", "))
	}
}

// located puts feed and line in the place of the SDK's number of an entry.
func located(err error, entries []entry) error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, located(one, entries))
		}
		return errors.Join(all...)
	}
	var invalid *webdelivery.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var i int
	if _, noNumber := fmt.Sscanf(invalid.Field, "desired[%d]", &i); noNumber == nil {
		return entries[i].wrong("%s", invalid.Reason)
	}
	if invalid.Field == "MaxRemove" {
		return fmt.Errorf("-max-remove: %s", invalid.Reason)
	}
	return err
}

// carryOut changes the list.
func (set *settings) carryOut(ctx context.Context, lists *webdelivery.NetworkListsService, plan *webdelivery.Plan, s program.Streams) error {
	const startOfLine = "\r\x1b[K"
	result, err := lists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: set.wait}, webdelivery.OnProgress(func(p webdelivery.Progress) {
		if s.ErrTerminal {
			fmt.Fprintf(s.Err, "%s%s, %d %%", startOfLine, p.Status, p.Percent)
		}
	}))
	if s.ErrTerminal {
		fmt.Fprint(s.Err, startOfLine)
	}
	var printed error
	switch {
	case result == nil:
	case set.asJSON:
		printed = printJSON(s.Out, result)
	default:
		_, printed = fmt.Fprintf(s.Out, "added %d, removed %d\n", result.Added, result.Removed)
	}
	switch {
	case err == nil:
		return printed
	case result != nil && webdelivery.OutcomeOf(err) != webdelivery.NotApplied:
		return &program.Exit{Code: program.Partly, Err: fmt.Errorf("%w; planning and applying again mends it", err)}
	case errors.Is(err, webdelivery.ErrPlanStale):
		return fmt.Errorf("%w; nothing was changed, plan again", err)
	default:
		return err
	}
}

// load reads what save has written.
func load(name string) (*webdelivery.Plan, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, err
	}
	plan := &webdelivery.Plan{}
	if err := json.Unmarshal(text, plan); err != nil {
		return nil, fmt.Errorf("%s is not a plan: %w", name, err)
	}
	if plan.ListID == "" || plan.Before == "" {
		return nil, fmt.Errorf("%s is not a plan", name)
	}
	return plan, nil
}
