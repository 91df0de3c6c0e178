package testserver

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"
)

// dimension is a column of the table of event records (service-interface section 2.5).
type dimension struct {
	name string
	of   func(*record) value
}

const (
	timeDimension = "event_timestamp_ms"
	hits          = "hits" // the only metric
)

// dimensions are those that the document names, and request_path for the top-K that lists it.
var dimensions = []dimension{
	{timeDimension, func(e *record) value { return timeValue(e.Time.UnixMilli()) }},
	{"event_severity", func(e *record) value { return textValue(e.Severity) }},
	{"event_type", func(e *record) value { return textValue(e.Type) }},
	{"event_action", func(e *record) value { return textValue(e.Action) }},
	{"client_connection_remote_ip", func(e *record) value { return addrValue(e.ConnectionRemoteIP) }},
	{"client_ip", func(e *record) value { return addrValue(e.ClientIP) }},
	{"client_browser", func(e *record) value { return textValue(e.Browser) }},
	{"client_country_code", func(e *record) value { return textValue(e.CountryCode) }},
	{"client_asn", func(e *record) value { return numberValue(e.ASN) }},
	{"rule_id", func(e *record) value { return textValue(e.RuleID) }},
	{"domain", func(e *record) value { return textValue(e.Domain) }},
	{"property", func(e *record) value { return textValue(e.Property) }},
	{"waf_action", func(e *record) value { return textValue(e.WAFAction) }},
	{"request_path", func(e *record) value { return textValue(e.RequestPath) }},
}

// value is one value of a row.
type value struct {
	kind   kind
	number int64 // of a number; of a time in Unix milliseconds
	text   string
	addr   netip.Addr
}

type kind uint8

// Kinds of values; null is that of an absent one.
const (
	null kind = iota
	number
	text
	address
	instant
)

func textValue(s string) value {
	if s == "" {
		return value{}
	}
	return value{kind: text, text: s}
}

// numberValue of nothing is null: no dimension has a meaningful 0.
func numberValue(n int64) value {
	if n == 0 {
		return value{}
	}
	return value{kind: number, number: n}
}

func addrValue(a netip.Addr) value {
	if !a.IsValid() {
		return value{}
	}
	return value{kind: address, addr: a}
}

func timeValue(milli int64) value { return value{kind: instant, number: milli} }

// timeLayout is how rows show a time: without zone designator (section 2.4).
const timeLayout = "2006-01-02T15:04:05.000"

// appendText appends the value as a filter compares it: what a row shows, without quotes and escapes; null is nothing.
func (v value) appendText(b []byte) []byte {
	switch v.kind {
	case number:
		return strconv.AppendInt(b, v.number, 10)
	case text:
		return append(b, v.text...)
	case address:
		return v.addr.AppendTo(b)
	case instant:
		return time.UnixMilli(v.number).UTC().AppendFormat(b, timeLayout)
	default:
		return b
	}
}

// appendJSON appends the value as a row shows it.
func (v value) appendJSON(b []byte) []byte {
	switch v.kind {
	case null:
		return append(b, "null"...)
	case number:
		return v.appendText(b)
	case text:
		return appendString(b, v.text)
	default:
		return append(v.appendText(append(b, '"')), '"')
	}
}

// is compares with a text without making one.
func (v value) is(s string) bool {
	if v.kind == text {
		return v.text == s
	}
	var space [64]byte
	return string(v.appendText(space[:0])) == s
}

// compare orders as JSON values are ordered: null first, numbers by size, strings, also those of addresses, byte by byte.
func (v value) compare(w value) int {
	switch {
	case v.kind != w.kind:
		return cmp.Compare(v.kind, w.kind)
	case v.kind == text:
		return cmp.Compare(v.text, w.text)
	case v.kind == address:
		var a, b [64]byte
		return bytes.Compare(v.addr.AppendTo(a[:0]), w.addr.AppendTo(b[:0]))
	default:
		return cmp.Compare(v.number, w.number)
	}
}

// appendString appends a JSON string. The loop spares nearly all of them the encoder. Bytes that are not UTF-8 stand in it
// as they are, as a service may copy them from a log; but half of a surrogate pair in its three bytes becomes an escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	b = append(b, '"')
	for s != "" {
		whole := 0 // bytes that are UTF-8
		for whole < len(s) {
			r, size := utf8.DecodeRuneInString(s[whole:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			whole += size
		}
		quoted := appendJSON(nil, s[:whole])
		b = append(b, quoted[1:len(quoted)-1]...)
		s = s[whole:]
		switch {
		case s == "":
		case len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80:
			b = fmt.Appendf(b, `\u%04x`, 0xd000|int(s[1]&0x3f)<<6|int(s[2]&0x3f))
			s = s[3:]
		default:
			b, s = append(b, s[0]), s[1:]
		}
	}
	return append(b, '"')
}

// appendJSON appends what [jsonReply] has as its body.
func appendJSON(b []byte, v any) []byte {
	return append(b, bytes.TrimSuffix(jsonReply(http.StatusOK, v).body, []byte("\n"))...)
}
