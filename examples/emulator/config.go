package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// file is the content of the file of -config.
type file struct {
	Faults  []fault
	Dialect webdeliverytest.Dialect
}

// fault is a webdeliverytest.FaultRule as written in the file.
type fault struct {
	Method, Path          string
	Skip, Count           int
	Probability           float64
	Seed                  uint64
	Delay, Stall, Dribble program.Duration
	Status                int
	Header                http.Header
	Body                  string
	Execute               bool
	Cut                   cut
	CutAfter              int
}

func (f fault) rule() webdeliverytest.FaultRule {
	return webdeliverytest.FaultRule{
		Method: f.Method, Path: f.Path, Skip: f.Skip, Count: f.Count, Probability: f.Probability, Seed: f.Seed,
		Delay: time.Duration(f.Delay), Stall: time.Duration(f.Stall), Dribble: time.Duration(f.Dribble),
		Status: f.Status, Header: f.Header, Body: f.Body, Execute: f.Execute,
		Cut: webdeliverytest.Cut(f.Cut), CutAfter: f.CutAfter,
	}
}

type cut webdeliverytest.Cut

var cuts = map[string]webdeliverytest.Cut{
	"before-read": webdeliverytest.CutBeforeRead, "after-read": webdeliverytest.CutAfterRead,
	"after-execute": webdeliverytest.CutAfterExecute, "body": webdeliverytest.CutBody, "chunked": webdeliverytest.CutChunked,
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *cut) UnmarshalText(text []byte) error {
	found, known := cuts[string(text)]
	if !known {
		return fmt.Errorf("cut %q is unknown; use before-read, after-read, after-execute, body or chunked", text)
	}
	*c = cut(found)
	return nil
}

// goName is what FaultRule.Check puts in front of a member.
var goName = regexp.MustCompile(`^\w+: Fault(Rule)?\.`)

// readFile reads the file. It refuses unknown members and values, and its error names their place.
func readFile(ctx context.Context, name string) (file, error) {
	text, err := program.ReadFile(ctx, name)
	if err != nil {
		return file{}, err
	}
	var f file
	if err := json.Unmarshal(text, &f, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true)); err != nil {
		return file{}, fmt.Errorf("%s:%w", name, place(text, err))
	}
	for i, rule := range f.Faults {
		if err := rule.rule().Check(); err != nil {
			return file{}, fmt.Errorf("%s: /faults/%d: %s; -h lists the members", name, i, goName.ReplaceAllString(err.Error(), ""))
		}
	}
	return f, nil
}

// place adds line, column and path of the wrong part to an error.
func place(text []byte, err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && semantic.Err != nil:
		return fmt.Errorf("%s: %s: %w", lineAndColumn(text, semantic.ByteOffset), semantic.JSONPointer, semantic.Err)
	case errors.As(err, &semantic):
		return fmt.Errorf("%s: %s: must not be a JSON %s", lineAndColumn(text, semantic.ByteOffset), semantic.JSONPointer, semantic.JSONKind)
	case errors.As(err, &syntactic):
		return fmt.Errorf("%s: %s: %w", lineAndColumn(text, syntactic.ByteOffset), syntactic.JSONPointer, syntactic.Err)
	default:
		return fmt.Errorf(" %w", err)
	}
}

// lineAndColumn counts from 1, columns in bytes. If the offset is that of blanks before a value, it returns that of the
// value.
func lineAndColumn(text []byte, offset int64) string {
	rest := text[min(int(offset), len(text)):]
	offset += int64(len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:")))
	before := text[:min(int(offset), len(text))]
	return fmt.Sprintf("%d:%d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}
