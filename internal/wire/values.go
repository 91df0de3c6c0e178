package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Code is a numeric code, quoted or not. Decoding a quoted word leaves it unchanged, because the HTTP status says
// enough. A Code has 32 bits on all platforms, and a number out of range becomes the nearest one in range. If several
// codes are decoded into one Code, it keeps the greatest.
type Code int

// UnmarshalJSON decodes a number, which may be quoted. It returns an error if the number is not an integer.
func (c *Code) UnmarshalJSON(b []byte) error {
	text, quoted := strings.CutPrefix(string(b), `"`)
	text = strings.TrimSpace(strings.TrimSuffix(text, `"`))
	f, err := strconv.ParseFloat(text, 64) // infinite if it is too large
	isNumber := strings.Trim(text, "+-.0123456789eE") == "" && (err == nil || errors.Is(err, strconv.ErrRange))
	switch {
	case text == "", text == "null", quoted && !isNumber:
		return nil
	case !isNumber || f != math.Trunc(f):
		return fmt.Errorf("the code %s is not a whole number", Clip(b))
	}
	*c = max(*c, Code(min(max(f, math.MinInt32), math.MaxInt32)))
	return nil
}

// Int is a 64-bit integer in any form that [unmarshalWhole] reads.
type Int int64

// UnmarshalJSON decodes an integer. Null and an empty string leave the Int unchanged.
func (n *Int) UnmarshalJSON(b []byte) error { return unmarshalWhole(b, n) }

// unmarshalWhole decodes an integer, which may be in quotes, or have a fraction of zeros. Null and an empty string leave
// it unchanged.
func unmarshalWhole[T ~int64](b []byte, n *T) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	v, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" {
		return fmt.Errorf("%s is not a whole number of 64 bits", Clip(b))
	}
	*n = T(v)
	return nil
}

// Shown is a number for people, such as a percentage, of which nothing but the sign matters. It is rounded down, a
// large number becomes 2^53, and what is no number leaves it unchanged.
type Shown int64

// UnmarshalJSON decodes a number, which may be quoted.
func (n *Shown) UnmarshalJSON(b []byte) error {
	const largest = 1 << 53
	f, _ := strconv.ParseFloat(strings.Trim(string(b), `"`), 64) // infinite if it is too large
	if strings.ContainsAny(string(b), "0123456789") {
		*n = Shown(math.Floor(min(max(f, -largest), largest)))
	}
	return nil
}

func unmarshalShown(b []byte, n *int) error {
	shown := Shown(*n)
	err := shown.UnmarshalJSON(b)
	*n = shown.Clamp()
	return err
}

// Clamp returns the nearest 32-bit integer, which fits an int on all platforms.
func (n Shown) Clamp() int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

// Present is true if a member is present and not null.
type Present bool

// UnmarshalJSON sets p to whether the member is not null.
func (p *Present) UnmarshalJSON(b []byte) error {
	*p = string(b) != "null"
	return nil
}

// unmarshalTime decodes a timestamp. One that cannot be read, like an empty string and null, becomes the zero time.
func unmarshalTime(b []byte, at *time.Time) error {
	if n := len(b); n >= 2 && b[0] == '"' {
		plain, ok := PlainTimestamp(b[1:n-1], new(Date))
		if *at = plain; ok {
			return nil
		}
	}
	var text string
	_ = json.Unmarshal(b, &text)
	*at, _ = ParseTimestamp(text)
	return nil
}

var timestampLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05",
	time.DateOnly,
}

// ParseTimestamp parses an ISO 8601 timestamp in any of the usual layouts, because the service document specifies none.
// A timestamp without a zone is in UTC. The result is in UTC, and in a year that JSON can have.
func ParseTimestamp(text string) (time.Time, error) {
	for _, layout := range timestampLayouts {
		if at, err := time.Parse(layout, text); err == nil && at.UTC().Year() >= 0 && at.UTC().Year() <= 9999 {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not an ISO 8601 timestamp", Clip([]byte(strconv.Quote(text))))
}
