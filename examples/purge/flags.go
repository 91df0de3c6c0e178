package main

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strconv"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

func parse(ctx context.Context, args []string, s program.Streams) (j *job, err error) {
	j = &job{s: s, action: webdelivery.ActionPurge, match: webdelivery.Exact, Transactions: []*transaction{}, Failed: []failure{}}
	flags := program.Flags("purge", source, s)
	file := flags.String("file", "", "`file` with the URIs")
	prefix := flags.Bool("prefix", false, "purge everything that begins with a URI, over http and https")
	expire := flags.Bool("expire", false, "expire instead of purge: caches may serve stale content while the origin is down")
	flags.BoolVar(&j.wait, "wait", false, "wait until the transactions have ended (off by default)")
	flags.Var(&j.timeout, "timeout", "with -wait or -resume: longest `duration` to wait, such as 30s or 10m (default: no limit)")
	flags.BoolVar(&j.json, "json", false, "print one JSON document instead of lines")
	flags.Func("resume", "`transaction` to wait for; may be repeated", func(text string) error {
		id, err := strconv.ParseUint(text, 10, 63)
		if id == 0 {
			err = errors.New("want the id of a transaction, a number above 0")
		}
		j.Transactions = append(j.Transactions, &transaction{ID: int64(id), Status: "UNKNOWN"})
		return err
	})
	if err = program.Parse(flags, args); err != nil {
		return nil, err
	}
	if *prefix {
		j.match = webdelivery.Prefix
	}
	if *expire {
		j.action = webdelivery.ActionExpire
	}
	resumes := len(j.Transactions) > 0
	switch {
	case resumes && (flags.NArg() > 0 || others(flags)):
		return nil, program.Misused("-resume purges nothing and always waits: leave out URIs and all other flags but -timeout and -json")
	case program.IsSet(flags, "timeout") && !j.wait && !resumes:
		return nil, program.Misused("-timeout needs -wait or -resume")
	case program.IsSet(flags, "timeout") && j.timeout == 0:
		return nil, program.Misused("-timeout must be above 0; without it, the wait has no limit")
	case resumes:
		j.wait = true
	default:
		j.uris, err = program.NewInput(ctx, s, *file, flags.Args(), whatToType)
	}
	return j, err
}

// others reports whether flags are set that -resume does not take.
func others(flags *flag.FlagSet) (found bool) {
	flags.Visit(func(f *flag.Flag) { found = found || !slices.Contains([]string{"resume", "timeout", "json"}, f.Name) })
	return found
}

// whatToType is the error of a program that got no URIs.
const whatToType = "no URIs; type: purge https://www.example.com/app.css, or: purge -file FILE, or pipe them in; -h shows all flags"
