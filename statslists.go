package webdelivery

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// NameList is a list of dimensions or metrics (service-interface section 4.3, open point 14).
type NameList struct {
	Names []string        `json:"names"` // in the service's order
	Raw   json.RawMessage `json:"raw"`   // the reply as it came; the service document does not show its shape
}

// Groupings is a list of valid grouping sets (service-interface sections 2.5 and 4.3, open point 14).
type Groupings struct {
	Groupings [][]string      `json:"groupings"` // each a set of dimensions that can be asked for together
	Raw       json.RawMessage `json:"raw"`       // the reply as it came; the service document does not show its shape
}

// Dimensions lists the dimensions of the family (service-interface section 4.3). A list in a shape that is not known is
// [ErrBadReply] (open point 14).
func (f *StatsFamily[Q]) Dimensions(ctx context.Context) (*NameList, error) {
	return f.names(ctx, "dimensions")
}

// Metrics lists the metrics of the family (service-interface section 4.3). A list in a shape that is not known is
// [ErrBadReply] (open point 14).
func (f *AggregatedFamily[Q]) Metrics(ctx context.Context) (*NameList, error) {
	return f.names(ctx, "metrics")
}

// Groupings lists the sets of dimensions that the family can group by (service-interface section 4.3). A list in a shape
// that is not known is [ErrBadReply] (open point 14).
func (f *AggregatedFamily[Q]) Groupings(ctx context.Context) (*Groupings, error) {
	items, raw, err := f.list(ctx, "groupings")
	if err != nil {
		return nil, err
	}
	return &Groupings{Groupings: items, Raw: raw}, nil
}

func (f *StatsFamily[Q]) names(ctx context.Context, what string) (*NameList, error) {
	items, raw, err := f.list(ctx, what)
	if err != nil {
		return nil, err
	}
	return &NameList{Names: append([]string{}, slices.Concat(items...)...), Raw: raw}, nil
}

// list reads one of the lists of open point 14.
func (f *StatsFamily[Q]) list(ctx context.Context, what string) ([][]string, json.RawMessage, error) {
	if err := f.usable(ctx); err != nil {
		return nil, nil, err
	}
	r, err := f.funnel.send(ctx, getCall(f.rules.Path+"/"+what, ""))
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkJSON(); err != nil {
		return nil, nil, err
	}
	items, wrong, err := rowjson.Names(r.Body, what)
	if wrong != "" {
		return nil, nil, r.bad(wrong, err)
	}
	return items, r.Body, nil
}
