package feed

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// document is a feed that is being read.
type document struct {
	*Reader
	name, text string
	line       int // the current line, from 1
	entries    int // number of entries so far
}

// add adds an entry on the current line. It returns an error if there are too many.
func (d *document) add(entry string) error {
	if limit := cmp.Or(d.limit, maxEntries); d.entries == limit {
		return fmt.Errorf("the feed has more than %d entries; split it", limit)
	}
	d.entries++
	d.Entries = append(d.Entries, entry)
	d.Places = append(d.Places, fmt.Sprintf("%s:%d", d.name, d.line))
	return nil
}

// ended returns the cause if the context has ended. It checks only at every 1,024th count, since a long feed takes
// seconds.
func ended(ctx context.Context, count int) error {
	if count%1024 != 0 || ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// comment matches a comment. // must begin a word, so that 192.0.2.0//24 does not become the address 192.0.2.0.
var comment = regexp.MustCompile(`[#;].*|(^|\s)//.*`)

func (d *document) plain(ctx context.Context) error {
	for line := range strings.Lines(d.text) {
		if err := ended(ctx, d.line-1); err != nil {
			return err
		}
		if line = strings.TrimSpace(comment.ReplaceAllString(line, "")); line != "" {
			if err := d.add(line); err != nil {
				return err
			}
		}
		d.line++
	}
	return nil
}

// csv reads the column with the given number, from 1, or with the given name in the first line.
func (d *document) csv(ctx context.Context) error {
	if d.Column == "" { // a guess could mistake a header for an entry: "cc" is a country
		return ErrNoColumn
	}
	table := csv.NewReader(strings.NewReader(d.text))
	table.Comment, table.TrimLeadingSpace = '#', true
	column, err := strconv.Atoi(d.Column)
	if err != nil {
		header, _ := table.Read()
		column = 1 + slices.Index(header, d.Column)
	}
	for {
		if err := ended(ctx, d.entries); err != nil {
			return err
		}
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if broken, ok := errors.AsType[*csv.ParseError](err); ok {
			d.line = broken.Line
			return broken.Err
		}
		d.line, _ = table.FieldPos(0)
		if column < 1 || column > len(row) {
			return fmt.Errorf("the table has no column %s; name another", d.Column)
		}
		if err := d.add(strings.TrimSpace(row[column-1])); err != nil {
			return err
		}
	}
}

// json reads an array of strings or objects, which may be a member of an object. With Field a.b, the array is the
// member a, and each entry is the member b of an object in the array. With Field a, both members are named a.
func (d *document) json(ctx context.Context) error {
	if broken, ok := errors.AsType[*json.SyntaxError](json.Unmarshal([]byte(d.text), new(json.RawMessage))); ok {
		d.line += strings.Count(d.text[:broken.Offset], "\n")
		return broken
	}
	array, member, _ := strings.Cut(d.Field, ".")
	member = cmp.Or(member, array)
	tokens := json.NewDecoder(strings.NewReader(d.text)) // the text has no syntax errors left
	token, _ := tokens.Token()
	if token == json.Delim('{') {
		for name, _ := tokens.Token(); name != array && tokens.More(); name, _ = tokens.Token() {
			_ = tokens.Decode(new(json.RawMessage))
		}
		token, _ = tokens.Token()
	}
	if token != json.Delim('[') {
		return fmt.Errorf("there is no array, or no member %q that is an array: set the field", array)
	}
	for counted := 0; tokens.More(); {
		if err := ended(ctx, d.entries); err != nil {
			return err
		}
		var element any
		_ = tokens.Decode(&element)
		end := int(tokens.InputOffset())
		d.line += strings.Count(d.text[counted:end], "\n")
		counted = end
		if object, ok := element.(map[string]any); ok {
			element = object[member]
		}
		entry, ok := element.(string)
		if !ok {
			return fmt.Errorf("the value that ends here is neither a string nor an object whose member %q is a string: set the field", member)
		}
		if err := d.add(entry); err != nil {
			return err
		}
	}
	return nil
}
