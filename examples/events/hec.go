package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
)

// hec is Splunk's HTTP Event Collector, see
// https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector.
var hec = protocol{
	flag: "hec", path: "/services/collector/event", variable: "SPLUNK_HEC_TOKEN", between: "\n",
	header: func(token string) http.Header {
		if token = strings.TrimSpace(token); !printable(token) {
			return nil
		}
		return http.Header{"Authorization": {"Splunk " + token}}
	},
	encoder: hecEncoder, judge: judgeHEC,
}

type hecEvent struct {
	Time       json.Number     `json:"time"` // in seconds
	Host       string          `json:"host,omitempty"`
	Source     string          `json:"source"`
	Sourcetype string          `json:"sourcetype"`
	Event      json.RawMessage `json:"event"`
}

// hecEncoder writes an event as -format ndjson does, and adds the key.
func hecEncoder(columns []table.Column) encoder {
	var line bytes.Buffer
	w, begun := table.Formats["ndjson"](&line, columns, false)
	return func(row webdelivery.Row, key string) ([]byte, error) {
		line.Reset()
		if err := errors.Join(begun, w.Write(row), w.Flush()); err != nil {
			return nil, err
		}
		at, err := timeOf(row)
		host, _ := row.Get(webdelivery.DimDomain)
		event := hecEvent{
			Time: json.Number(fmt.Sprintf("%d.%03d", at.Unix(), at.Nanosecond()/1e6)), Host: host.String(),
			Source: "webdelivery", Sourcetype: "webdelivery:event",
			Event: fmt.Appendf(bytes.TrimSuffix(line.Bytes(), []byte("}\n")), `,"key":%q}`, key),
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(event)
	}
}

// judgeHEC takes nothing but code 0 for a success, which a proxy does not send.
func judgeHEC(status int, answer []byte) verdict {
	var said struct {
		Code *int `json:"code"`
	}
	code := -1
	if json.Unmarshal(answer, &said) == nil && said.Code != nil {
		code = *said.Code
	}
	switch {
	case status == http.StatusBadRequest && slices.Contains([]int{7, 10, 11, 14}, code): // index or channel: no event would pass
		return never
	case status >= http.StatusBadRequest:
		return refused
	case code == 0:
		return taken
	default:
		return later
	}
}
