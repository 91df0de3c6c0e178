package main

import (
	"context"
	"errors"
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
	flags.BoolVar(&j.wait, "wait", false, "wait until the transactions have ended")
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
	if len(j.Transactions) == 0 {
		j.uris, err = program.NewInput(ctx, s, *file, flags.Args(), whatToType)
	} else if j.wait = true; flags.NArg() > 0 || *file != "" || *prefix || *expire {
		err = program.Misused("-resume purges nothing: leave out URIs and all other flags but -json")
	}
	return j, err
}

// whatToType is the error of a program that got no URIs.
const whatToType = "no URIs; type: purge https://www.example.com/app.css, or: purge -file FILE, or pipe them in; -h shows all flags"
