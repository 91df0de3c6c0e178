package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// Duration is a flag for a length of time such as 30m, 12h, 7d or 1d12h.
type Duration time.Duration

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
	parsed, failed := time.ParseDuration(rest)
	parsed += time.Duration(days) * 24 * time.Hour
	if err != nil || failed != nil || parsed < 0 || strings.ContainsAny(rest, "+-") { // below 0: the sum is too large
		return 0, errors.New("want a duration such as 30m, 12h, 7d or 1d12h")
	}
	return parsed, nil
}

// Set reads a duration.
func (d *Duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	*d = Duration(parsed)
	return err
}

// String returns a text that Set reads, such as 1d12h.
func (d *Duration) String() string {
	const day = Duration(24 * time.Hour)
	text, rest := "", time.Duration(*d%day).String()
	if *d >= day {
		text = strconv.FormatInt(int64(*d/day), 10) + "d"
	}
	if text != "" && rest == "0s" {
		return text
	}
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(rest, zero) {
			rest = strings.TrimSuffix(rest, zero[1:])
		}
	}
	return text + rest
}

// Type is the word for the value in the help.
func (d *Duration) Type() string { return "duration" }

// Waiting has the flags of a command that can wait.
type Waiting struct {
	Wait    bool
	Timeout Duration
}

// Flags adds --wait with this description, and --timeout. A command that always waits has no description.
func (w *Waiting) Flags(flags *pflag.FlagSet, wait string) {
	w.Timeout = Duration(10 * time.Minute)
	if w.Wait = wait == ""; !w.Wait {
		flags.BoolVar(&w.Wait, "wait", false, wait)
	}
	flags.Var(&w.Timeout, "timeout", "longest `duration` to wait; 0 is no limit")
}

// Context returns a context that ends after the timeout.
func (w *Waiting) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(w.Timeout), errors.New("--timeout "+w.Timeout.String()+" is over"))
}

// Poll returns an option that shows the progress of a wait on a terminal.
func (a *App) Poll(what string) webdelivery.WaitOption {
	return webdelivery.WaitProgress(func(p webdelivery.Progress) {
		if p.Err != nil {
			a.Show("polling again after: " + Printable(p.Err.Error()))
			return
		}
		a.Show(Bar(p.Percent) + " " + what)
	})
}

// Range has the flags of a range of time.
type Range struct{ since, until string }

// Flags adds --since, with this default, and --until.
func (r *Range) Flags(flags *pflag.FlagSet, since string) {
	SinceFlag(flags, &r.since, since)
	flags.StringVar(&r.until, "until", "", "end before this `time`, written in the same way; default now")
}

// Times returns the range. Its end is zero if none was given.
func (r *Range) Times(now time.Time) (start, end time.Time, err error) {
	if start, err = ParseTime("--since", r.since, now); err != nil {
		return start, end, err
	}
	last := now.Truncate(time.Second)
	if r.until != "" {
		if end, err = ParseTime("--until", r.until, now); err != nil {
			return start, end, err
		}
		last = end
	}
	if !start.Before(last) {
		return start, end, Misused("--since, %s, is not before --until, %s", start.Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	return start, end, nil
}

// SinceFlag adds --since for [ParseTime].
func SinceFlag(flags *pflag.FlagSet, since *string, value string) {
	flags.StringVar(since, "since", value, "begin at this `time`: 90m, 24h or 7d ago, today, yesterday, 2026-11-20, or RFC 3339; days are those of UTC")
}

// ParseTime reads the time of a flag.
func ParseTime(flag, text string, now time.Time) (time.Time, error) {
	now = now.UTC().Truncate(time.Second)
	today := now.Truncate(24 * time.Hour)
	if ago, err := ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	switch text {
	case "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return now, Misused("%s %q: want 90m, 24h, 7d, today, yesterday, 2026-11-20 or 2026-11-20T08:00:00Z", flag, text)
}

// Filter is a flag for an expression in the service's syntax.
type Filter struct{ filters.Expr }

// FilterFlag adds --filter.
func FilterFlag(flags *pflag.FlagSet) *Filter {
	f := new(Filter)
	flags.Var(f, "filter", "`expression` such as domain==a,domain==b (or), or event_action==BLOCK;rule_id!=c (and)")
	return f
}

// Set reads an expression. An empty one, from a variable that is not set, is none.
func (f *Filter) Set(text string) (err error) {
	if f.Expr = nil; text != "" {
		f.Expr, err = filters.Parse(text)
	}
	return err
}

// String returns the expression.
func (f *Filter) String() string {
	if f.Expr == nil {
		return ""
	}
	return f.Expr.String()
}

// Type is the word for the value in the help.
func (f *Filter) Type() string { return "expression" }
