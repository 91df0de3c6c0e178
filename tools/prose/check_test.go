package main

import (
	"strings"
	"testing"
)

func TestLongSentences(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 26)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"26 words":                    {long + ".", 1},
		"25 words":                    {strings.Repeat("word ", 25) + ".", 0},
		"two sentences":               {strings.Repeat("word ", 20) + "end. " + strings.Repeat("word ", 20) + "end.", 0},
		"code is one word":            {"`" + long + "` is short.", 0},
		"an abbreviation is no end":   {strings.Repeat("word ", 20) + "e.g. " + strings.Repeat("word ", 10), 1},
		"signs are no words":          {strings.Repeat("| ", 30), 0},
		"an address is one word":      {"See https://example.com/" + strings.Repeat("a-b-", 30) + ".", 0},
		"the text of a link counts":   {"[" + long + "](x.md)", 1},
		"a question ends a sentence":  {strings.Repeat("word ", 20) + "end? " + strings.Repeat("word ", 20), 0},
		"a bracket may follow an end": {strings.Repeat("word ", 20) + "end.) " + strings.Repeat("word ", 20), 0},
		"a bold head ends a sentence": {"**" + strings.Repeat("word ", 20) + "end.** " + strings.Repeat("word ", 20), 0},
	} {
		if got := check(c.text, 25); len(got) != c.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), c.want, got)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"The reply is short.":            1,
		"Replies are short.":             1,
		"`reply` is a name.":             0,
		"One request per call.":          0,
		"One request a second.":          0,
		"It polls twice a second.":       0,
		"It takes one a call.":           1,
		"Nobody is told.":                2,
		"The history of this.":           0,
		"(service-interface section 4)":  1,
		"All attempts but for the last.": 1,
	} {
		if got := check(text, 25); len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", text, len(got), want, got)
		}
	}
}

func TestParagraphsOfGo(t *testing.T) {
	t.Parallel()
	source := `// Package p is first.
//
// Second
// goes on.
//
//	code is left out
//
// - one item
// - another
//
// [x]: https://example.com
package p

//nolint:all // left out
var err = "webdelivery: a message" // at the end

var other = "no message"

func ExampleP() {
	// Output:
	// what it prints
}
`
	want := []paragraph{{1, "Package p is first."}, {3, "Second goes on."}, {8, "one item"}, {9, "another"}, {15, "at the end"}, {15, "webdelivery: a message"}}
	got, err := goParagraphs("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParagraphsOfPages(t *testing.T) {
	t.Parallel()
	page := "# Head\nFirst\nline.\n\n```go\ncode\n```\n| a | b c |\n|---|---|\n1. item\n   goes on\n"
	want := []paragraph{{1, "Head"}, {2, "First line."}, {8, "a"}, {8, "b c"}, {10, "item goes on"}}
	if got := pageParagraphs(page); !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func equal(a, b []paragraph) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
