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

// Names reads a list of dimensions, metrics or groupings. list is one of these words. Names reads all forms of open
// point 14. The body is an array, or an object that holds it as the member list or items. The elements are strings,
// objects with a name, or arrays of these. An item of groupings may have several names or none, every other item has
// one. If the body is no such list, Names returns what is wrong, and the cause if there is one. The body must be valid
// JSON.
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

// announcesMore reports whether an object is a page of such a list with others behind it, in whatever spelling.
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

// names is one item of such a list.
type names []string

// UnmarshalJSON reads one name, or an array of names.
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
	if wire.Decode(item, &name) == nil && name != "" {
		return name, nil
	}
	if wire.Decode(item, &object) == nil && object.Name != "" &&
		!bool(object.EntriesURI || object.List || object.Deprecated) && !strings.Contains(object.URI, "/config/networklists/") {
		return object.Name, nil
	}
	return "", fmt.Errorf("%s is not a name", wire.Clip(item))
}
