package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// parsers find the entries in the text of a feed.
var parsers = map[string]func(r *reader, feed, text string) ([]entry, error){
	"plain": (*reader).plain, "csv": (*reader).csv, "json": (*reader).json,
}

// check refuses settings that no parser understands.
func (r *reader) check() error {
	if r.format != "" && parsers[r.format] == nil {
		return program.Misused("-format %q is none of plain, csv and json", r.format)
	}
	if n, err := strconv.Atoi(r.column); r.column == "" || err == nil && n < 1 {
		return program.Misused("-column %q is neither a name nor a number from 1", r.column)
	}
	if r.timeout <= 0 {
		return program.Misused("-timeout %v is not above 0", r.timeout)
	}
	return nil
}

// comment: // begins one only where a word begins, lest 192.0.2.0//24 becomes an address.
var comment = regexp.MustCompile(`[#;].*|(^|\s)//.*`)

func (*reader) plain(feed, text string) (entries []entry, err error) {
	line := 0
	for content := range strings.Lines(text) {
		line++
		if content = strings.TrimSpace(comment.ReplaceAllString(content, "")); content != "" {
			entries = append(entries, entry{content, feed, line})
		}
	}
	return entries, nil
}

func (r *reader) csv(feed, text string) (entries []entry, err error) {
	table := csv.NewReader(strings.NewReader(text))
	table.Comment, table.TrimLeadingSpace, table.ReuseRecord = '#', true, true
	column, notNumber := strconv.Atoi(r.column) // from 1
	for {
		row, err := table.Read()
		var broken *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return entries, nil
		case errors.As(err, &broken):
			return nil, entry{feed: feed, line: broken.Line}.wrong("%v", broken.Err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", feed, err)
		}
		line, _ := table.FieldPos(0)
		if notNumber != nil && column == 0 {
			for i, name := range row {
				if strings.TrimSpace(name) == r.column {
					column = i + 1
				}
			}
			if column == 0 {
				return nil, entry{feed: feed, line: line}.wrong("no column is called %q", r.column)
			}
			continue
		}
		if column > len(row) {
			return nil, entry{feed: feed, line: line}.wrong("there is no column %d", column)
		}
		entries = append(entries, entry{strings.TrimSpace(row[column-1]), feed, line})
	}
}

func (r *reader) json(feed, text string) ([]entry, error) {
	d := &document{Decoder: jsontext.NewDecoder(strings.NewReader(text)), text: text, feed: feed, line: 1}
	var path []string
	if r.field != "" {
		path = strings.Split(r.field, ".")
	}
	err := d.value(path)
	if err == nil {
		if _, after := d.token(); !errors.Is(after, io.EOF) {
			err = errors.New("something follows the first JSON value")
		}
	}
	var broken *jsontext.SyntacticError
	if errors.As(err, &broken) {
		d.line = 1 + strings.Count(text[:broken.ByteOffset], "\n")
	}
	if err != nil {
		return nil, entry{feed: feed, line: d.line}.wrong("%v", err)
	}
	return d.entries, nil
}

// document is a JSON feed that is being read.
type document struct {
	*jsontext.Decoder
	text, feed string
	read, line int // how far, in bytes, and the line that this is
	entries    []entry
}

// token reads the next one and counts lines; its own is that of its end, as no token goes over several.
func (d *document) token() (jsontext.Token, error) {
	token, err := d.ReadToken()
	to := int(d.InputOffset())
	d.line += strings.Count(d.text[d.read:to], "\n")
	d.read = to
	return token, err
}

// value takes the strings at the end of a path of member names; arrays on the way are gone through.
func (d *document) value(path []string) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '[':
		for d.PeekKind() != ']' {
			if err := d.value(path); err != nil {
				return err
			}
		}
		_, err = d.token()
		return err
	case '{':
		return d.object(path)
	case '"':
		if len(path) > 0 {
			return fmt.Errorf("%s is a string, and -field leads to a member of an object", d.StackPointer())
		}
		d.entries = append(d.entries, entry{token.String(), d.feed, d.line})
		return nil
	default:
		return fmt.Errorf("%q is %s, and entries are strings", d.StackPointer(), token.Kind())
	}
}

func (d *document) object(path []string) error {
	if len(path) == 0 {
		return errors.New("an object has members, and -field does not say which")
	}
	line, found := d.line, false
	for d.PeekKind() != '}' {
		name, err := d.token()
		if err != nil {
			return err
		}
		if name.String() != path[0] {
			err = d.SkipValue()
		} else {
			found = true
			err = d.value(path[1:])
		}
		if err != nil {
			return err
		}
	}
	if !found {
		d.line = line // where it begins
		return fmt.Errorf("an object has no member %q", path[0])
	}
	_, err := d.token()
	return err
}
