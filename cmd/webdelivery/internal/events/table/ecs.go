package table

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// ecsVersion is the version of the reference below, as each event names it.
const ecsVersion = "8.17.0"

// ecsFields has the field of each dimension, as in https://www.elastic.co/guide/en/ecs/8.17/ecs-field-reference.html. All
// other dimensions are below webdelivery. Some of them look as if they had a field: event.type has a fixed list of values,
// which event_type does not use; and source has one address, which is that of the client behind all proxies.
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

// newECS leaves out nulls and empty texts. Elasticsearch rejects an event with a value that has not the type of its field,
// so that one is below webdelivery, too, as it was received.
func newECS(columns []string) func([]byte, webdelivery.Row, time.Time) []byte {
	return func(line []byte, row webdelivery.Row, at time.Time) []byte {
		event := object{
			"@timestamp": timeText(at),
			"ecs":        object{"version": ecsVersion},
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
		out := bytes.NewBuffer(line)
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(event) // values of rows can be encoded
		return out.Bytes()
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
	inner, _ := o[name].(object)
	if inner == nil {
		inner = object{}
		o[name] = inner
	}
	inner.set(rest, value)
}
