package webdelivery

import (
	"context"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// Dimensions returns the names of the dimensions of the family. If the list has an unknown shape, it returns
// [ErrBadResponse], and the Body of the [*Error] has the list (open point 14).
func (f *StatsFamily[Q]) Dimensions(ctx context.Context) ([]string, error) {
	return f.names(ctx, "dimensions")
}

// Metrics returns the names of the metrics of the family, as Dimensions does. Raw events have none, so Metrics of Events
// returns a [*ValidationError].
func (f *StatsFamily[Q]) Metrics(ctx context.Context) ([]string, error) {
	return f.names(ctx, "metrics")
}

// Groupings returns the sets of dimensions that one query of the family may ask for together. Raw events have none, so
// Groupings of Events returns a [*ValidationError]. If the list has an unknown shape, it returns [ErrBadResponse] (open
// point 14). (Service document, [section 4.3].)
//
// [section 4.3]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#43-security-statistics-endpoints
func (f *StatsFamily[Q]) Groupings(ctx context.Context) ([][]string, error) {
	return f.list(ctx, "groupings")
}

func (f *StatsFamily[Q]) names(ctx context.Context, what string) ([]string, error) {
	items, err := f.list(ctx, what)
	if err != nil {
		return nil, err
	}
	return append([]string{}, slices.Concat(items...)...), nil
}

// list reads one of the lists of open point 14.
func (f *StatsFamily[Q]) list(ctx context.Context, what string) ([][]string, error) {
	switch {
	case f.refused != nil:
		return nil, f.refused
	case !f.rules.aggregated && what != "dimensions":
		return nil, invalid(what, "raw events have none")
	}
	r, err := f.conn.send(ctx, getCall(f.rules.name, f.rules.path+"/"+what, ""))
	if err != nil {
		return nil, err
	}
	if err := r.checkText(); err != nil {
		return nil, err
	}
	items, wrong, err := rowjson.Names(r.Body, what)
	if wrong != "" {
		return nil, r.bad(wrong, err)
	}
	return items, nil
}
