package table

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// ECS is the format of the Elastic Common Schema.
const ECS = "ecs"

// ecsVersion is the version of the reference below, as each event names it.
const ecsVersion = "8.17.0"

// ecsField is a field of the Elastic Common Schema, with the type that its values must have: Elasticsearch rejects an
// event with a value of another type.
type ecsField struct {
	group, name string // group is a path of objects
	read        func(v webdelivery.Value) (any, error)
}

// ecsFields has the field of each dimension, as in https://www.elastic.co/guide/en/ecs/8.17/ecs-field-reference.html.
// All other dimensions are below webdelivery. Some of them look as if they had a field: event.type has a fixed list of
// values, which event_type does not use; and source has one address, which is that of the client behind all proxies.
var ecsFields = map[string]ecsField{
	webdelivery.DimEventAction:       {"event", "action", readText},
	webdelivery.DimEventSeverity:     {"event", "severity", readNumber}, // only if it is a number
	webdelivery.DimRuleID:            {"rule", "id", readText},
	webdelivery.DimClientIP:          {"source", "ip", readIP},
	webdelivery.DimClientCountryCode: {"source.geo", "country_iso_code", readText},
	webdelivery.DimClientASN:         {"source.as", "number", readNumber},
	webdelivery.DimClientBrowser:     {"user_agent", "name", readText}, // a name such as Chrome, not the header
	webdelivery.DimDomain:            {"url", "domain", readText},
	"request_path":                   {"url", "path", readText},
}

func readText(v webdelivery.Value) (any, error)   { return v.String(), nil }
func readNumber(v webdelivery.Value) (any, error) { return v.Int64() }
func readIP(v webdelivery.Value) (any, error)     { return v.Addr() }

// object is a JSON object. Package json writes its members in the order of their names.
type object map[string]any

// ecsWriter writes one event per line.
type ecsWriter struct {
	*bufio.Writer
	lines   *json.Encoder
	columns []Column
}

func newECS(out io.Writer, columns []Column, _ bool) (Writer, error) {
	w := &ecsWriter{Writer: bufio.NewWriter(out), columns: columns}
	w.lines = json.NewEncoder(w.Writer)
	w.lines.SetEscapeHTML(false)
	return w, nil
}

// Write writes a line. Nulls and empty texts are left out. A value that does not have the type of its field is below
// webdelivery, as it was received.
func (w *ecsWriter) Write(row webdelivery.Row) error {
	line := object{
		"ecs":   object{"version": ecsVersion},
		"event": object{"kind": "event", "category": []string{"web"}, "dataset": "webdelivery.events"},
	}
	for _, column := range w.columns {
		value := row.At(column.At)
		switch {
		case value.String() == "":
		case isTime(column.Name, value):
			at, err := appendTime(nil, value)
			if err != nil {
				return fmt.Errorf("column %s: %w", column.Name, err)
			}
			line["@timestamp"] = string(at)
		default:
			line.add(column.Name, value)
		}
	}
	return w.lines.Encode(line)
}

func (w *ecsWriter) Close() error { return w.Flush() }

// add adds a dimension.
func (o object) add(dimension string, value webdelivery.Value) {
	field, known := ecsFields[dimension]
	if known {
		if typed, err := field.read(value); err == nil {
			o.below(field.group)[field.name] = typed
			return
		}
	}
	o.below("webdelivery")[dimension] = value
}

// below returns the object at a path such as source.geo, and creates it if there is none.
func (o object) below(path string) object {
	for name := range strings.SplitSeq(path, ".") {
		inner, _ := o[name].(object)
		if inner == nil {
			inner = object{}
			o[name] = inner
		}
		o = inner
	}
	return o
}
