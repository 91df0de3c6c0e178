package main

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strconv"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

func parse(ctx context.Context, args []string, s program.Streams) (j *job, err error) {
	j = &job{s: s, action: webdelivery.ActionPurge, Transactions: []*transaction{}, Failed: []failure{}}
	j.timeout = program.Duration(10 * time.Minute)
	flags := program.Flags("purge", source, s)
	file := flags.String("file", "", "`file` with the URIs")
	base := flags.String("base", "", "`URL` that paths are relative to, such as https://www.example.com/; without it, give complete URIs")
	prefix := flags.Bool("prefix", false, "purge everything that begins with a URI, over http and https")
	both := flags.Bool("both", false, "purge each URI over http and https; URIs then need no protocol")
	expire := flags.Bool("expire", false, "expire instead of purge: caches may serve stale content while the origin is down")
	flags.StringVar(&j.redis, "redis", "", "`URL` of the Redis or Valkey whose queue many processes share, such as redis://redis.example.com:6379; default: REDIS_URL of the environment")
	flags.BoolVar(&j.wait, "wait", false, "wait until the transactions have ended (off by default)")
	flags.Var(&j.timeout, "timeout", "with -wait or -resume: longest `duration` to wait, such as 30s or 1h; 0 is no limit")
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
	if *expire {
		j.action = webdelivery.ActionExpire
	}
	resumes := len(j.Transactions) > 0
	switch {
	case resumes && (flags.NArg() > 0 || others(flags)):
		return nil, program.Misused("-resume purges nothing and always waits: leave out URIs and all other flags but -timeout and -json")
	case resumes:
		j.wait = true
		return j, nil
	}
	if j.match, err = matcher(*base, *prefix, *both); err == nil {
		j.lines, err = program.NewInput(ctx, s, *file, flags.Args(),
			"no URIs; type: purge https://www.example.com/app.css, or: purge -file FILE, or pipe them in; -h shows all flags")
	}
	return j, err
}

// others reports whether flags are set that -resume does not take.
func others(flags *flag.FlagSet) (found bool) {
	flags.Visit(func(f *flag.Flag) { found = found || !slices.Contains([]string{"resume", "timeout", "json"}, f.Name) })
	return found
}
