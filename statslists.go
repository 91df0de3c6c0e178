package webdelivery

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// NameList is a list of dimensions or metrics. (Open point 14.)
type NameList struct {
	Names []string        `json:"names"` // in the order of the response
	Raw   json.RawMessage `json:"raw"`   // the body of the response; the service document does not show its shape
}

// Groupings is a list of valid grouping sets. (Open point 14.)
type Groupings struct {
	Groupings [][]string      `json:"groupings"` // each is a set of dimensions that one query may ask for together
	Raw       json.RawMessage `json:"raw"`       // the body of the response; the service document does not show its shape
}

// Dimensions returns the dimensions of the family. If the list has an unknown shape, it returns [ErrBadReply] (open
// point 14).
func (f *StatsFamily[Q]) Dimensions(ctx context.Context) (*NameList, error) {
	return f.names(ctx, "dimensions")
}

// Metrics returns the metrics of the family. If the list has an unknown shape, it returns [ErrBadReply] (open point
// 14).
func (f *AggregatedFamily[Q]) Metrics(ctx context.Context) (*NameList, error) {
	return f.names(ctx, "metrics")
}

// Groupings returns the sets of dimensions that the family can group by. If the list has an unknown shape, it returns
// [ErrBadReply] (open point 14). (Service document, [section 4.3].)
//
// [section 4.3]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#43-security-statistics-endpoints
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
	if f.refused != nil {
		return nil, nil, f.refused
	}
	r, err := f.conn.send(ctx, getCall(f.rules.name, f.rules.path+"/"+what, ""))
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkText(); err != nil {
		return nil, nil, err
	}
	items, wrong, err := rowjson.Names(r.Body, what)
	if wrong != "" {
		return nil, nil, r.bad(wrong, err)
	}
	return items, r.Body, nil
}
