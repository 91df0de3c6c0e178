package events

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// format is how events are written as lines of text.
type format struct {
	extension string // of a file
	header    string // the first line of a file, if there is one
	// line returns the line of an event that happened at a time. It is valid until the next one.
	line func(row webdelivery.Row, at time.Time) []byte
}

// newFormat returns csv, ndjson or ecs. The columns have the given order.
func newFormat(name string, columns []string) format {
	switch name {
	case "ecs":
		return format{"ndjson", "", newECS(columns)}
	case "ndjson":
		return format{"ndjson", "", func(row webdelivery.Row, at time.Time) []byte {
			return append(cli.AppendRow(nil, row, columns, at), '\n')
		}}
	default:
		return format{"csv", strings.Join(columns, ",") + "\n", newCSV(columns)} // no name has a comma
	}
}

func newCSV(columns []string) func(webdelivery.Row, time.Time) []byte {
	line, cells := cli.CSV(), make([]string, len(columns))
	return func(row webdelivery.Row, at time.Time) []byte {
		for i, column := range columns {
			value, _ := row.Get(column)
			cells[i] = value.String()
			if column == webdelivery.DimEventTimestamp {
				cells[i] = cli.Timestamp(at)
			}
		}
		return line(cells)
	}
}

// ecsFields has fields of https://www.elastic.co/guide/en/ecs/8.17/ecs-field-reference.html. All other dimensions are
// below webdelivery. Some look as if they had a field: event.type has a fixed list of values, which event_type does not
// use; and source has one address, which is that of the client behind all proxies.
var ecsFields = map[string]string{
	webdelivery.DimEventAction:       "event.action",
	webdelivery.DimEventSeverity:     "event.severity",
	webdelivery.DimRuleID:            "rule.id",
	webdelivery.DimClientIP:          "source.ip",
	webdelivery.DimClientCountryCode: "source.geo.country_iso_code",
	webdelivery.DimClientASN:         "source.as.number",
	webdelivery.DimClientBrowser:     "user_agent.name", // a name such as Chrome, not the header
	webdelivery.DimDomain:            "url.domain",
	"request_path":                   "url.path",
}

// newECS leaves out nulls and empty texts. Elasticsearch rejects an event with a value that has not the type of its
// field, so that one is below webdelivery, too, as it was received.
func newECS(columns []string) func(webdelivery.Row, time.Time) []byte {
	return func(row webdelivery.Row, at time.Time) []byte {
		event := object{
			"@timestamp": cli.Timestamp(at),
			"ecs":        object{"version": "8.17.0"},
			"event":      object{"kind": "event", "category": []string{"web"}, "dataset": "webdelivery.events"},
		}
		for _, column := range columns {
			value, _ := row.Get(column)
			if value.String() == "" || column == webdelivery.DimEventTimestamp {
				continue
			}
			var typed any = value.String()
			var err error
			switch column {
			case webdelivery.DimClientIP:
				typed, err = value.Addr()
			case webdelivery.DimClientASN, webdelivery.DimEventSeverity:
				typed, err = value.Int64()
			}
			if path := ecsFields[column]; path != "" && err == nil {
				event.set(path, typed)
			} else {
				event.set("webdelivery."+column, value)
			}
		}
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(event) // values of rows can be encoded
		return line.Bytes()
	}
}

// object is a JSON object. Package json writes its members in the order of their names.
type object map[string]any

// set sets the value at a path such as source.ip, and creates the objects on the way.
func (o object) set(path string, value any) {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		o[name] = value
		return
	}
	inner, isObject := o[name].(object)
	if !isObject {
		inner = object{}
		o[name] = inner
	}
	inner.set(rest, value)
}
