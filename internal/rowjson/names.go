package rowjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Names decodes a list of dimensions, metrics or groupings; the parameter list is one of these words. It accepts all
// forms of open point 14: the body is an array, or an object with the array as its member list or items. The elements
// are strings, objects with a name, or arrays of these. A grouping may have any number of names, any other item has
// one. If the body is not such a list, Names returns what is wrong, and the cause if there is one. The body must be
// valid JSON.
func Names(body []byte, list string) (items [][]string, wrong string, cause error) {
	raw := json.RawMessage(body)
	var object map[string]json.RawMessage
	if err := wire.Decode(raw, &object); errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, wire.Reason(err), nil
	} else if err == nil {
		raw = object["items"]
		if named, ok := object[list]; ok {
			raw = named
		}
		if raw == nil {
			return nil, "an object without items or " + list, nil
		}
	}
	var read []names
	if err := wire.Decode(raw, &read); err != nil || read == nil {
		return nil, "a list of " + list + " in a shape that is not known", err
	}
	if announcesMore(object, len(read)) {
		return nil, "a page of " + list + " with others behind it", nil
	}
	items = make([][]string, len(read))
	for i, item := range read {
		if items[i] = item; list != "groupings" && len(item) != 1 {
			return nil, "a list of " + list + " with an item that is not one name", nil
		}
	}
	return items, "", nil
}

// announcesMore reports whether an object is a page of a list that announces further pages in any form.
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

// names is an item of such a list.
type names []string

// UnmarshalJSON decodes a name or an array of names.
func (n *names) UnmarshalJSON(b []byte) error {
	var items []json.RawMessage
	if b[0] != '[' {
		items = append(items, b)
	} else if err := wire.Decode(b, &items); err != nil {
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

// nameIn decodes a name, or an object with a name. It refuses network lists, which have names too.
func nameIn(item json.RawMessage) (string, error) {
	var name string
	var object struct {
		Name       string       `json:"name"`
		URI        string       `json:"uri"`
		EntriesURI wire.Present `json:"entries_uri"`
		List       wire.Present `json:"list"`
		Deprecated wire.Present `json:"deprecated"`
	}
	if wire.Decode(item, &name) == nil && name != "" {
		return name, nil
	}
	if wire.Decode(item, &object) == nil && object.Name != "" &&
		!bool(object.EntriesURI || object.List || object.Deprecated) && !strings.Contains(object.URI, "/config/networklists/") {
		return object.Name, nil
	}
	return "", fmt.Errorf("%s is not a name", wire.Clip(item))
}
