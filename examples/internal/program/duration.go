package program

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Duration is a flag, and a text in JSON, for a length of time such as 30m, 12h, 7d or 1d12h.
type Duration time.Duration

var errDuration = errors.New("want a duration such as 30m, 12h, 7d or 1d12h")

// ParseDuration reads a length of time as [time.ParseDuration] does, with days of 24 hours (d) in front. It returns an
// error if the duration is negative or longer than 292 years.
func ParseDuration(text string) (time.Duration, error) {
	before, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		before, rest = "0", text
	} else if rest == "" {
		rest = "0"
	}
	days, err := strconv.ParseUint(before, 10, 16) // 65,535 days are 179 years
	if err != nil || strings.ContainsAny(rest, "+-") {
		return 0, errDuration
	}
	parsed, err := time.ParseDuration(rest)
	parsed += time.Duration(days) * 24 * time.Hour
	if err != nil || parsed < 0 { // below 0: the sum is too large
		return 0, errDuration
	}
	return parsed, nil
}

// Set reads a duration.
func (d *Duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	*d = Duration(parsed)
	return err
}

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

// String returns a text that Set reads, such as 1d12h.
func (d *Duration) String() string {
	const day = Duration(24 * time.Hour)
	text, rest := "", *d%day
	if *d >= day {
		text = strconv.FormatInt(int64(*d/day), 10) + "d"
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
