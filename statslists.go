package webdelivery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/wire"
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
	g := &Groupings{Raw: raw, Groupings: make([][]string, len(items))}
	for i, item := range items {
		g.Groupings[i] = item
	}
	return g, nil
}

func (f *StatsFamily[Q]) names(ctx context.Context, what string) (*NameList, error) {
	items, raw, err := f.list(ctx, what)
	if err != nil {
		return nil, err
	}
	n := &NameList{Raw: raw, Names: make([]string, len(items))}
	for i, item := range items {
		n.Names[i] = strings.Join(item, ",")
	}
	return n, nil
}

// list reads one of the lists of open point 14, in each of its shapes: an array, or an object that holds it under its
// own name or as items; of strings, of objects with a name, or of arrays of these.
func (f *StatsFamily[Q]) list(ctx context.Context, what string) ([]nameList, json.RawMessage, error) {
	if f.rules.refused != nil {
		return nil, nil, f.rules.refused
	}
	r, err := f.funnel.send(ctx, getCall(f.rules.path+"/"+what, ""))
	if err != nil {
		return nil, nil, err
	}
	if err := r.checkJSON(); err != nil {
		return nil, nil, err
	}
	raw := json.RawMessage(wire.ExactNames(r.Body))
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		raw = object["items"]
		if named, ok := object[what]; ok {
			raw = named
		}
	}
	var items []nameList
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		return nil, nil, r.bad("a list of "+what+" in a shape that is not known", err)
	}
	if announcesMore(object, len(items)) {
		return nil, nil, r.bad("a page of "+what+" with others behind it", nil)
	}
	// A set of dimensions may be empty or have several; a name is one.
	if what != "groupings" && slices.ContainsFunc(items, func(n nameList) bool { return len(n) != 1 }) {
		return nil, nil, r.bad("a list of "+what+" with an item that is not one name", nil)
	}
	return items, r.Body, nil
}

// announcesMore tells whether an object is a page of such a list with others behind it, in whatever spelling.
func announcesMore(page map[string]json.RawMessage, items int) bool {
	says := func(name string, nothing ...string) bool {
		value, ok := page[name]
		return ok && !slices.Contains(nothing, string(value))
	}
	above := func(name string, n int) bool {
		var number wire.Int
		return page[name] != nil && number.UnmarshalJSON(page[name]) == nil && number > wire.Int(n)
	}
	return says("has_more", "false", `"false"`, "null") || says("next_uri", `""`, "null") || above("total", items) || above("page_count", 1)
}

// nameList is one item of such a list: one name, or several.
type nameList []string

func (n *nameList) UnmarshalJSON(b []byte) error {
	var items []json.RawMessage
	if b[0] != '[' {
		items = append(items, b)
	} else if err := json.Unmarshal(b, &items); err != nil {
		return err
	}
	for _, item := range items {
		name, err := nameIn(item)
		if err != nil {
			return err
		}
		*n = append(*n, strings.Split(name, ",")...)
	}
	return nil
}

// nameIn reads a name, or an object that has one. A network list has one too, but that is no dimension.
func nameIn(item json.RawMessage) (string, error) {
	var name string
	var object struct {
		Name       string       `json:"name"`
		URI        string       `json:"uri"`
		EntriesURI wire.Present `json:"entries_uri"`
		List       wire.Present `json:"list"`
		Deprecated wire.Present `json:"deprecated"`
	}
	if json.Unmarshal(item, &name) == nil && name != "" {
		return name, nil
	}
	if json.Unmarshal(item, &object) == nil && object.Name != "" &&
		!bool(object.EntriesURI || object.List || object.Deprecated) && !strings.Contains(object.URI, listsPath+"/") {
		return object.Name, nil
	}
	return "", fmt.Errorf("%s is no name", wire.Clip(item))
}
