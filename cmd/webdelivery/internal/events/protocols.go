package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// hec is Splunk's HTTP Event Collector, see
// https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector.
var hec = protocol{
	flag: "hec", path: "/services/collector/event", variable: "SPLUNK_HEC_TOKEN",
	header: hecHeader, body: "%s", between: "\n", encoder: hecEncoder, judge: judgeHEC,
}

func hecHeader(token string) http.Header {
	token = strings.TrimSpace(token)
	if token == "" || !printable(token) {
		return nil
	}
	return http.Header{"Authorization": {"Splunk " + token}}
}

// printable reports whether a text can be in a header.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) })
}

// hecEncoder writes an event as -o ndjson does, and adds the key.
func hecEncoder(columns []string) encoder {
	return func(row webdelivery.Row, at time.Time, key string) []byte {
		content := bytes.TrimSuffix(cli.AppendRow(nil, row, columns, at), []byte("}"))
		event := object{
			"time":       json.Number(fmt.Sprintf("%d.%03d", at.Unix(), at.Nanosecond()/1e6)),
			"source":     "webdelivery",
			"sourcetype": "webdelivery:event",
			"event":      json.RawMessage(fmt.Appendf(content, `,"key":%q}`, key)),
		}
		if host, _ := row.Get(webdelivery.DimDomain); host.String() != "" {
			event["host"] = host
		}
		text, _ := json.Marshal(event) // values of rows can be encoded
		return text
	}
}

// judgeHEC takes nothing but code 0 for a success, which a proxy does not send.
func judgeHEC(status int, answer []byte) verdict {
	said := struct {
		Code int `json:"code"`
	}{-1}
	_ = json.Unmarshal(answer, &said) // that of a proxy has no code
	switch {
	case status/100 == 2 && said.Code == 0:
		return taken
	case status == http.StatusBadRequest && slices.Contains([]int{7, 10, 11, 14}, said.Code): // index or channel
		return never
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		return refused
	default:
		return later
	}
}

// otlp is the OpenTelemetry protocol for logs, in JSON over HTTP, see https://opentelemetry.io/docs/specs/otlp/.
var otlp = protocol{
	flag: "otlp", path: "/v1/logs", variable: "OTEL_EXPORTER_OTLP_HEADERS",
	header: otlpHeader, body: otlpBody, between: ",", encoder: otlpEncoder, judge: judgeOTLP,
}

const otlpBody = `{"resourceLogs":[{
	"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"webdelivery"}}]},
	"scopeLogs":[{"scope":{"name":"events"},"logRecords":[%s]}]
}]}`

// otlpHeader reads name=value,name=value, with values as in a URL.
func otlpHeader(text string) http.Header {
	header := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		if pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if err != nil || !found || !printable(name+value) || strings.ContainsAny(name, ` "(),/:;<>?@[\]{}`) {
			return nil
		}
		header.Set(name, value)
	}
	return header
}

// otlpEncoder writes an event with its columns as attributes. A line that people read is the body.
func otlpEncoder(columns []string) encoder {
	return func(row webdelivery.Row, at time.Time, key string) []byte {
		attributes := []object{{"key": "event.key", "value": object{"stringValue": key}}}
		record := object{"timeUnixNano": fmt.Sprint(at.UnixNano()), "observedTimeUnixNano": fmt.Sprint(time.Now().UnixNano())}
		var body []string
		for _, column := range columns {
			value, _ := row.Get(column)
			word := value.String()
			if value.IsNull() || column == webdelivery.DimEventTimestamp {
				continue
			}
			kind := "stringValue"
			if _, err := value.Int64(); err == nil && value.Raw()[0] != '"' {
				kind = "intValue" // in quotes, too
			}
			attributes = append(attributes, object{"key": "webdelivery." + column, "value": object{kind: word}})
			switch column {
			case webdelivery.DimEventSeverity:
				record["severityNumber"], record["severityText"] = severities[strings.ToLower(word)], word
			case webdelivery.DimEventType, webdelivery.DimEventAction, webdelivery.DimRuleID:
				body = append(body, word)
			}
		}
		record["body"], record["attributes"] = object{"stringValue": strings.Join(body, " ")}, attributes
		text, _ := json.Marshal(record) // values of rows can be encoded
		return text
	}
}

// severities has the numbers of the words that services use. Those of syslog, as in rules of ModSecurity, are mapped as
// in https://opentelemetry.io/docs/specs/otel/logs/data-model-appendix/; so are its levels. Another word has no number.
var severities = map[string]int{
	"0": 21, "emergency": 21,
	"1": 19, "alert": 19,
	"2": 18, "critical": 18,
	"3": 17, "error": 17, "high": 17,
	"4": 13, "warning": 13, "warn": 13, "medium": 13,
	"5": 10, "notice": 10, "low": 10,
	"6": 9, "informational": 9, "information": 9, "info": 9,
	"7": 5, "debug": 5,
}

// judgeOTLP takes an answer that is neither empty nor JSON for that of a proxy. By the specification, a request that is
// answered with another error than these four must not be sent again as it is.
func judgeOTLP(status int, answer []byte) verdict {
	var said struct {
		PartialSuccess struct {
			Rejected json.Number `json:"rejectedLogRecords"` // may be in quotes
		} `json:"partialSuccess"`
	}
	switch {
	case slices.Contains([]int{429, 502, 503, 504}, status):
		return later
	case status/100 != 2:
		return refused
	case len(bytes.TrimSpace(answer)) > 0 && json.Unmarshal(answer, &said) != nil:
		return later
	case strings.Trim(said.PartialSuccess.Rejected.String(), "0") != "":
		return refused
	default:
		return taken
	}
}
