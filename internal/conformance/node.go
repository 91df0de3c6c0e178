package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// node is a JSON value within a response. An unexpected value ends the check. The rule differs if it is about the shape
// of the response (probe.strict). Otherwise a precondition is missing, and the rule is skipped.
type node struct {
	p     *probe
	path  string // its place, for messages
	value any    // the value that json.Decoder with UseNumber returns
}

// json returns the body, which must be one JSON text.
func (r response) json() node {
	dec := json.NewDecoder(bytes.NewReader(r.body))
	dec.UseNumber()
	n := node{p: r.p, path: r.request}
	if err := dec.Decode(&n.value); err != nil || !utf8.Valid(r.body) {
		n.wrong("has no JSON body")
	}
	if _, err := dec.Token(); err != io.EOF {
		n.wrong("has something after its JSON body")
	}
	return n
}

func (n node) wrong(format string, args ...any) {
	detail := n.path + " " + fmt.Sprintf(format, args...)
	if n.p.strict {
		n.p.differs("%s", detail)
	}
	n.p.skip("%s", detail)
}

func (n node) has(name string) bool {
	object, _ := n.value.(map[string]any)
	_, ok := object[name]
	return ok
}

// at returns a member of an object. Names are case-sensitive.
func (n node) at(name string) node {
	value, ok := typed[map[string]any](n, "an object")[name]
	if !ok {
		n.wrong("has no member %s", name)
	}
	return node{p: n.p, path: n.path + "." + name, value: value}
}

func (n node) items() []node {
	list := typed[[]any](n, "an array")
	nodes := make([]node, len(list))
	for i, value := range list {
		nodes[i] = node{p: n.p, path: fmt.Sprintf("%s[%d]", n.path, i), value: value}
	}
	return nodes
}

func (n node) text() string { return typed[string](n, "a string") }

func (n node) flag() bool { return typed[bool](n, "a boolean") }

// typed returns the value of a node that must have the type T, which what names.
func typed[T any](n node, what string) T {
	value, ok := n.value.(T)
	if !ok {
		n.wrong("is %s, not %s", n.kind(), what)
	}
	return value
}

func (n node) integer() int64 {
	number, _ := n.value.(json.Number)
	i, err := number.Int64()
	if err != nil {
		n.wrong("is %s, not an integer", n.kind())
	}
	return i
}

func (n node) null() bool { return n.value == nil }

// time returns an ISO 8601 timestamp in UTC. The document leaves the zone designator open.
func (n node) time() time.Time {
	const what = "an ISO 8601 timestamp in UTC"
	t, err := time.Parse(statsTime, n.match(isoUTC, what)[1])
	if err != nil {
		n.wrong("is %q, not "+what, n.value)
	}
	return t
}

// match returns a text that must match a pattern, with its groups.
func (n node) match(pattern *regexp.Regexp, what string) []string {
	parts := pattern.FindStringSubmatch(n.text())
	if parts == nil {
		n.wrong("is %q, not %s", n.value, what)
	}
	return parts
}

var (
	isoUTC  = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]00:?00)?$`)
	unzoned = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?$`)
	isUUID  = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`) // RFC 9562
)

// address checks that the value is the address of the resource at path, which is relative to {base_url}/{customer}/v1.
func (n node) address(path string) {
	if got, form := n.p.relative(n.text()); got != path {
		n.wrong("is %q (%s), not the address of %s", n.value, form, path)
	}
}

// kind returns the type of a value, for messages. It does not show the value, which may be private.
func (n node) kind() string {
	switch v := n.value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "a number with a fraction"
		}
		return "a number"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

// members returns the names of an object's members, in their order in the body.
func (r response) members() []string {
	var names []string
	dec := json.NewDecoder(bytes.NewReader(r.body))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}

// isJSON decodes the body, and reports whether it is JSON.
func (r response) isJSON(into any) bool { return json.Unmarshal(r.body, into) == nil }

// shape describes a body that the document leaves open.
func (r response) shape() string {
	var n node
	switch {
	case len(r.body) == 0:
		return "no body"
	case !r.isJSON(&n.value):
		return "no JSON"
	case r.members() == nil:
		return n.kind()
	default:
		return "an object with " + strings.Join(r.members(), ", ")
	}
}
