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

// column is a column of a result, such as a dimension of event records (service document, section 2.5).
type column struct {
	name string
	of   func(*record) value
}

const (
	timeDimension = "event_timestamp_ms"
	hits          = "hits" // the only metric
)

// dimensions are those that the document names, and request_path for the category requestpath of a top-K.
var dimensions = []column{
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
	number int64 // a number, or a time in Unix milliseconds
	text   string
	addr   netip.Addr
}

type kind uint8

// Kinds of values; null is an absent value.
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

// numberValue returns null for 0, because no dimension has a meaningful 0.
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

// timeLayout is the format of times in rows: without a zone designator (section 2.4).
const timeLayout = "2006-01-02T15:04:05.000"

// appendText appends the value in the form that a filter compares: that of a row, without quotes and escapes. null is
// "".
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

// appendJSON appends the value in the form of a row.
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

// is compares the value with a text, without allocating.
func (v value) is(s string) bool {
	if v.kind == text {
		return v.text == s
	}
	var space [64]byte
	return string(v.appendText(space[:0])) == s
}

// compare orders values as JSON: null first, numbers by size, and strings (including addresses) byte by byte.
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

// appendString appends a JSON string. For nearly all strings, the loop avoids the encoder. Bytes that are not UTF-8
// stay unchanged, as a service may copy them from a log. Half of a surrogate pair in three bytes becomes an escape.
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

// appendJSON appends the body of [jsonResponse].
func appendJSON(b []byte, v any) []byte {
	return append(b, bytes.TrimSuffix(jsonResponse(http.StatusOK, v).body, []byte("\n"))...)
}
