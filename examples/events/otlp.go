package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
)

// otlp is the OpenTelemetry protocol for logs, in JSON over HTTP, see https://opentelemetry.io/docs/specs/otlp/.
var otlp = protocol{
	flag: "otlp", path: "/v1/logs", variable: "OTEL_EXPORTER_OTLP_HEADERS",
	head: `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"webdelivery"}}]},` +
		`"scopeLogs":[{"scope":{"name":"events"},"logRecords":[`,
	between: ",", tail: `]}]}]}`,
	header: otlpHeader, encoder: otlpEncoder, judge: judgeOTLP,
}

// otlpHeader reads name=value,name=value, with values as in a URL.
func otlpHeader(text string) http.Header {
	header := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		name = strings.TrimSpace(name)
		if err != nil || !printable(name) || !printable(value) || strings.ContainsAny(name, ` "(),/:;<=>?@[\]{}`) {
			return nil
		}
		header.Set(name, value)
	}
	return header
}

type (
	otlpRecord struct {
		Time       string          `json:"timeUnixNano"`
		Observed   string          `json:"observedTimeUnixNano"`
		Body       otlpValue       `json:"body"`
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		Text   *string `json:"stringValue,omitempty"`
		Number string  `json:"intValue,omitempty"`
	}
)

// otlpEncoder writes an event with its columns as attributes. A line that people read is the body.
func otlpEncoder(columns []table.Column) encoder {
	return func(row webdelivery.Row, key string) ([]byte, error) {
		at, err := timeOf(row)
		if err != nil {
			return nil, err
		}
		record := otlpRecord{
			Time: strconv.FormatInt(at.UnixNano(), 10), Observed: strconv.FormatInt(time.Now().UnixNano(), 10),
			Attributes: []otlpAttribute{{"event.key", otlpValue{Text: &key}}},
		}
		var body []string
		for _, column := range columns {
			value := row.At(column.At)
			text := value.String()
			if value.IsNull() || column.Name == webdelivery.DimEventTimestamp {
				continue
			}
			attribute := otlpAttribute{"webdelivery." + column.Name, otlpValue{Text: &text}}
			if _, err := value.Int64(); err == nil && value.Raw()[0] != '"' {
				attribute.Value = otlpValue{Number: text}
			}
			record.Attributes = append(record.Attributes, attribute)
			switch column.Name {
			case webdelivery.DimEventType, webdelivery.DimEventAction, webdelivery.DimRuleID:
				body = append(body, text)
			}
		}
		text := strings.Join(body, " ")
		record.Body.Text = &text
		return json.Marshal(record)
	}
}

// judgeOTLP takes an answer that is neither empty nor JSON for that of a proxy.
func judgeOTLP(status int, answer []byte) verdict {
	var said struct {
		PartialSuccess struct {
			Rejected json.Number `json:"rejectedLogRecords"` // may be in quotes
		} `json:"partialSuccess"`
	}
	answer = bytes.TrimSpace(answer)
	switch {
	case status >= http.StatusBadRequest:
		return refused
	case len(answer) > 0 && json.Unmarshal(answer, &said) != nil:
		return later
	case strings.Trim(said.PartialSuccess.Rejected.String(), "0") != "":
		return refused
	default:
		return taken
	}
}
