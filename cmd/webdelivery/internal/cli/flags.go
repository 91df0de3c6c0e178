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

// Duration is a flag for a length of time such as 30m, 12h or 7d.
type Duration time.Duration

// ParseDuration reads a length of time as [time.ParseDuration] does, or a number of days of 24 hours (d).
func ParseDuration(text string) (time.Duration, error) {
	if number, inDays := strings.CutSuffix(text, "d"); inDays {
		days, err := strconv.ParseUint(number, 10, 16) // 65,535 days are 179 years
		if err == nil {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	} else if parsed, err := time.ParseDuration(text); err == nil && parsed >= 0 {
		return parsed, nil
	}
	return 0, errors.New("want a duration such as 30m, 12h or 7d")
}

// Set reads a duration.
func (d *Duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	*d = Duration(parsed)
	return err
}

var withoutZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// String returns a text that Set reads, such as 36h.
func (d *Duration) String() string { return withoutZeros.Replace(time.Duration(*d).String()) }

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
	w.Wait = wait == ""
	if !w.Wait {
		flags.BoolVar(&w.Wait, "wait", false, wait)
	}
	flags.Var(&w.Timeout, "timeout", "longest `duration` to wait; 0 is no limit")
}

// Context returns a context that ends after the timeout of a wait.
func (w *Waiting) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if !w.Wait || w.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Duration(w.Timeout), errors.New("--timeout "+w.Timeout.String()+" is over"))
}

// Poll returns an option that shows the progress of a wait on a terminal.
func (a *App) Poll() webdelivery.WaitOption {
	return webdelivery.WaitProgress(func(p webdelivery.Progress) {
		text := Bar(p.Percent) + " of " + p.ID
		if p.Err != nil {
			text = "polling again after: " + p.Err.Error()
		}
		a.Show(text)
	})
}

// Range has the flags of a range of time.
type Range struct{ since, until string }

// Flags adds --since, with this default, and --until.
func (r *Range) Flags(flags *pflag.FlagSet, since string) {
	SinceFlag(flags, &r.since, since)
	flags.StringVar(&r.until, "until", "", "end before this `time`, written in the same way; default now")
}

// Times returns the range.
func (r *Range) Times(now time.Time) (start, end time.Time, err error) {
	start, err = ParseTime("--since", r.since, now)
	end = now.UTC().Truncate(time.Second)
	if err == nil && r.until != "" {
		end, err = ParseTime("--until", r.until, now)
	}
	if err == nil && !start.Before(end) {
		err = Misused("--since, %s, is not before --until, %s", Time(start), Time(end))
	}
	return start, end, err
}

// SinceFlag adds --since for [ParseTime].
func SinceFlag(flags *pflag.FlagSet, since *string, value string) {
	flags.StringVar(since, "since", value,
		"begin at this `time`: 90m, 24h or 7d ago, today, yesterday, 2026-11-20, or RFC 3339; days are those of UTC")
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

// flag is one whose text a function checks. Unlike those of [pflag.FlagSet.Func], it keeps its text.
type flag struct {
	text string
	set  func(text string) error
}

func (f *flag) String() string { return f.text }
func (f *flag) Type() string   { return "" }

// Set takes a text.
func (f *flag) Set(text string) error {
	f.text = text
	return f.set(text)
}

// Filter is a flag for an expression in the service's syntax.
type Filter struct{ filters.Expr }

// FilterFlag adds --filter. An empty value, from a variable that is not set, is no filter.
func FilterFlag(flags *pflag.FlagSet) *Filter {
	f := new(Filter)
	const usage = "`expression` such as domain==a,domain==b (or), or event_action==BLOCK;rule_id!=c (and)"
	flags.Var(&flag{set: func(text string) (err error) {
		if f.Expr = nil; text != "" {
			f.Expr, err = filters.Parse(text)
		}
		return err
	}}, "filter", usage)
	return f
}

// String returns the expression.
func (f *Filter) String() string {
	if f.Expr == nil {
		return ""
	}
	return f.Expr.String()
}
