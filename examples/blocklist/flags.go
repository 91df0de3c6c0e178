package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/feed"
)

// job is what the command line asks for.
type job struct {
	s                   program.Streams
	reader              feed.Reader
	options             webdelivery.PlanOptions
	apply, wait, json   bool
	savePlan, applyPlan string
	never               string     // file
	find                netip.Addr // the zero Addr without -find
	operands            []string   // LIST FEED..., or none
}

func parse(ctx context.Context, args []string, s program.Streams) (*job, error) {
	j := &job{s: s}
	j.reader.Open = j.open
	flags := program.Flags("blocklist", source, s)
	flags.StringVar(&j.reader.Format, "format", "", "`format` of the feeds: plain, csv or json")
	flags.StringVar(&j.reader.Column, "column", "", "`name` of the CSV column in the first line, or its number if no line has names; required for CSV")
	flags.StringVar(&j.reader.Field, "field", "", "`name` of the JSON member that is the array or is in its objects; a.b means member b of the objects in the array a")
	flags.IntVar(&j.options.MaxRemove, "max-remove", 0, "highest `number` of removed entries; 0 is the default, 20 % or a few of a small list; -1 allows all")
	flags.IntVar(&j.options.MaxAdd, "max-add", 50_000, "highest `number` of added entries, from 1")
	flags.IntVar(&j.options.WidestIPv4, "widest-ipv4", 8, "prefix `length` of the widest IPv4 range that may be added; 0 is the default, -1 allows all")
	flags.IntVar(&j.options.WidestIPv6, "widest-ipv6", 19, "prefix `length` of the widest IPv6 range that may be added; 0 is the default, -1 allows all")
	flags.BoolVar(&j.options.Aggregate, "aggregate", false, "merge entries into the fewest ranges that cover the same addresses")
	flags.BoolVar(&j.apply, "apply", false, "change the list")
	flags.BoolVar(&j.wait, "wait", false, "wait until the changed list is deployed (off by default)")
	flags.BoolVar(&j.json, "json", false, "print JSON: the plan, and with -apply the result as a second value")
	flags.StringVar(&j.savePlan, "save-plan", "", "write the plan to a regular `file` that only its owner can read, to check it before -apply-plan")
	flags.StringVar(&j.never, "never", "", "`file` of addresses and ranges, one per line: a plan that would add an entry that overlaps one is refused")
	find := flags.String("find", "", "print the entries of all lists that cover this `address`; takes no flag other than -json")
	flags.StringVar(&j.applyPlan, "apply-plan", "", "apply the plan in this `file`, unless the list has changed since; takes no flags other than -wait and -json")
	if err := program.Parse(flags, args); err != nil {
		return nil, err
	}
	j.operands = flags.Args()
	if _, err := program.Arguments(j.operands); err != nil {
		return nil, err
	}
	alone := func(allowed ...string) bool { // an argument or another flag would be ignored
		stray := flags.NArg()
		flags.Visit(func(f *flag.Flag) {
			if !slices.Contains(allowed, f.Name) {
				stray++
			}
		})
		return stray == 0
	}
	if *find != "" {
		addr, err := netip.ParseAddr(*find)
		switch {
		case err != nil:
			return nil, program.Misused("-find %q is not an address", *find)
		case !alone("find", "json"):
			return nil, program.Misused("-find takes no LIST, no FEED, and only the flag -json: remove the others")
		}
		j.find = addr
		return j, nil
	}
	switch {
	case program.Special(j.savePlan): // a file would replace the device or link
		return nil, program.Misused("-save-plan: %s is not a regular file; name another file", j.savePlan)
	case j.applyPlan != "" && !alone("apply-plan", "wait", "json"):
		return nil, program.Misused("-apply-plan takes no LIST, no FEED, and only the flags -wait and -json: remove the others")
	case j.applyPlan == "" && flags.NArg() < 2 && (flags.NArg() == 1 || program.Configured()):
		return nil, program.Misused("LIST or FEED is missing; type: blocklist LIST FEED, such as: blocklist office feed.txt; -h shows all flags")
	case !slices.Contains([]string{"", "plain", "csv", "json"}, j.reader.Format):
		return nil, program.Misused("-format %q is unknown; use plain, csv or json", j.reader.Format)
	case j.options.MaxRemove < -1:
		return nil, program.Misused("-max-remove %d must be at least -1", j.options.MaxRemove)
	case j.options.MaxAdd < 1:
		return nil, program.Misused("-max-add %d must be at least 1", j.options.MaxAdd)
	case j.options.WidestIPv4 < -1 || j.options.WidestIPv4 > 32:
		return nil, program.Misused("-widest-ipv4 %d must be between -1 and 32", j.options.WidestIPv4)
	case j.options.WidestIPv6 < -1 || j.options.WidestIPv6 > 128:
		return nil, program.Misused("-widest-ipv6 %d must be between -1 and 128", j.options.WidestIPv6)
	}
	j.apply = j.apply || j.applyPlan != ""
	if j.applyPlan == "" && flags.NArg() == 0 {
		j.operands = []string{"blocklist"}
		return j, j.reader.Parse(ctx, "sample.txt", "", strings.NewReader(sample))
	}
	return j, nil
}

// open opens a feed that is not an address. A read of standard input ends with the context.
func (j *job) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if name != "-" {
		return program.Open(ctx, name)
	}
	read := func() ([]byte, error) { return io.ReadAll(io.LimitReader(j.s.In, feed.MaxSize+1)) }
	text, err := program.Until(ctx, read, func([]byte) {})
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// readNever reads the file of -never.
func (j *job) readNever(ctx context.Context) error {
	if j.never == "" {
		return nil
	}
	ranges := feed.Reader{Format: "plain", Open: j.open}
	if err := ranges.Read(ctx, j.never); err != nil {
		return fmt.Errorf("-never: %w", err)
	}
	for i, text := range ranges.Entries {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			var addr netip.Addr
			addr, err = netip.ParseAddr(text)
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if err != nil {
			return fmt.Errorf("-never: %s: %q is neither an address nor a range", ranges.Places[i], text)
		}
		j.options.Never = append(j.options.Never, prefix)
	}
	return nil
}

// inFlags replaces the names of the SDK's options by those of the flags.
var inFlags = strings.NewReplacer(
	"webdelivery: invalid ", "", "webdelivery: plan refused: ", "",
	"WidestIPv4", "-widest-ipv4", "WidestIPv6", "-widest-ipv6", "MaxAdd", "-max-add", "MaxRemove", "-max-remove", "Never", "-never", "Aggregate", "-aggregate",
)

var desired = regexp.MustCompile(`desired\[(\d+)\]`)

// refused says why the SDK refuses to plan, in terms of the command line: with flags, and with places in feeds. The
// cause is a feed, so this is not wrong usage. A plan that exceeds a limit is printed, too.
func (j *job) refused(why error) error {
	text := desired.ReplaceAllStringFunc(inFlags.Replace(why.Error()), func(place string) string {
		i, err := strconv.Atoi(desired.FindStringSubmatch(place)[1])
		if err != nil || i >= len(j.reader.Places) {
			return place // an entry may look like a place
		}
		return j.reader.Places[i]
	})
	var guard *webdelivery.PlanError
	if !errors.As(why, &guard) || guard.Plan == nil {
		return &program.Exit{Code: program.Failed, Err: errors.New(text)}
	}
	return &program.Exit{Code: beyond, Err: errors.Join(errors.New(text), j.print(guard.Plan, guard.Plan.String()))}
}
