package program

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Span is a flag, and a text in JSON, for a length of time such as 30m, 12h, 7d or 1d12h.
type Span time.Duration

var errSpan = errors.New("want a time span such as 30m, 12h, 7d or 1d12h")

// ParseSpan reads a length of time as [time.ParseDuration] does, with days of 24 hours (d) in front. It returns an
// error if the span is negative or longer than 292 years.
func ParseSpan(text string) (time.Duration, error) {
	before, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		before, rest = "0", text
	} else if rest == "" {
		rest = "0"
	}
	days, err := strconv.ParseUint(before, 10, 16) // 65,535 days are 179 years
	if err != nil || strings.ContainsAny(rest, "+-") {
		return 0, errSpan
	}
	parsed, err := time.ParseDuration(rest)
	parsed += time.Duration(days) * 24 * time.Hour
	if err != nil || parsed < 0 { // below 0: the sum is too large
		return 0, errSpan
	}
	return parsed, nil
}

// Set reads a span.
func (s *Span) Set(text string) error {
	parsed, err := ParseSpan(text)
	*s = Span(parsed)
	return err
}

// UnmarshalText reads a span.
func (s *Span) UnmarshalText(text []byte) error { return s.Set(string(text)) }

// String returns a text that Set reads, such as 1d12h.
func (s *Span) String() string {
	const day = Span(24 * time.Hour)
	text, rest := "", *s%day
	if *s >= day {
		text = strconv.FormatInt(int64(*s/day), 10) + "d"
	}
	if text != "" && rest == 0 {
		return text
	}
	short := time.Duration(rest).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(short, zero) {
			short = strings.TrimSuffix(short, zero[1:])
		}
	}
	return text + short
}
