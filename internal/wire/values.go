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

// Code is a code that should be a whole number, however the service writes it. A word in quotes leaves it unchanged,
// because the HTTP status says the same. A Code has 32 bits everywhere, and a number out of range becomes the nearest
// one in range, never a small one. Of several codes that are decoded into one Code the greatest stays.
type Code int

// UnmarshalJSON reads a number, also one in quotes. It returns an error for a number that is not a whole one.
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

// Int is a whole number that may stand in quotes. It keeps all its digits.
type Int int64

// UnmarshalJSON reads a whole number. Null and an empty text leave the Int unchanged.
func (n *Int) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a whole number of 64 bits", Clip(b))
	}
	*n = Int(v)
	return nil
}

// Clamp returns the nearest number of 32 bits, which fits an int everywhere.
func (n Int) Clamp() int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

// Present is true after a member was decoded that is not null.
type Present bool

// UnmarshalJSON sets the Present.
func (p *Present) UnmarshalJSON(b []byte) error {
	*p = string(b) != "null"
	return nil
}

// unmarshalTime reads a timestamp. An empty text and null are the zero time.
func unmarshalTime(b []byte, at *time.Time) (err error) {
	if n := len(b); n >= 2 && b[0] == '"' {
		plain, ok := PlainTimestamp(b[1:n-1], new(Date))
		if *at = plain; ok {
			return nil
		}
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if *at = (time.Time{}); text != "" {
		*at, err = ParseTimestamp(text)
	}
	return err
}

var timestampLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05",
	time.DateOnly,
}

// ParseTimestamp reads the text of an ISO 8601 timestamp. The service document shows no pattern, so it is read in all
// usual ones; a timestamp without a zone is UTC, and so is the result.
func ParseTimestamp(text string) (time.Time, error) {
	for _, layout := range timestampLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not an ISO 8601 timestamp", Clip([]byte(strconv.Quote(text))))
}
