package main

import (
	"fmt"
	"regexp"
	"strings"
)

// words has the words that the project does not use, and what it says in their place. The table in CONTRIBUTING.md
// has the reasons.
var words = []struct {
	not *regexp.Regexp
	say string
}{
	{word(`repl(y|ies)`), "response (HTTP) or result (of a call)"},
	{word(`he|his|him|himself`), "they, their"},
	{word(`shall`), "must, or the present tense"},
	{word(`(one|two|three) an? (call|attempt|request|poll|page|row|URI|caller)`), "per call"},
	{word(`from look to look|(each|every|a|the (first|last|next)) look`), "poll"},
	{word(`looks? (again|anew)`), "polls again"},
	{word(`(passing|lasting) (fault|error|failure)s?|(fault|error|failure)s? that (may|can|will) pass`), "transient, permanent"},
	{word(`for the rest`), "otherwise"},
	{word(`and the like|or the like|its like`), "name the others"},
	{word(`given up`), "closed, canceled, timed out"},
	{word(`(is|are) told`), "say who reports what"},
	{word(`nobody`), "name the actor"},
	{word(`but for`), "except"},
	{word(`(can|could|may|is|are|be) ?(not|to)? be had`), "cannot be read, is unreachable"},
	{word(`in vain`), "without effect"},
	{word(`of (yours|theirs)`), "your, their"},
	{word(`of an? (user|caller|client)'s`), "user's, caller's"},
	{word(`service-interface`), "the service document"},
}

func word(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + pattern + `)\b`) }

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`!?\[([^\]]*)\](\([^)]*\))?`)
	address    = regexp.MustCompile(`https?://\S+`)
	sentence   = regexp.MustCompile(`[.!?]["')*\]]*\s+`)
	letter     = regexp.MustCompile(`[\pL\pN]`)
)

// check gives what is wrong with a paragraph.
func check(text string, limit int) []string {
	text = inlineCode.ReplaceAllString(text, "CODE")
	text = link.ReplaceAllString(text, "$1")
	text = address.ReplaceAllString(text, "ADDRESS")
	var findings []string
	for _, w := range words {
		for _, found := range w.not.FindAllString(text, -1) {
			findings = append(findings, fmt.Sprintf("%q: say %s", found, w.say))
		}
	}
	for _, s := range sentences(text) {
		if n := count(s); n > limit {
			findings = append(findings, fmt.Sprintf("%d words: %s", n, s))
		}
	}
	return findings
}

// sentences splits at the marks that end one. A dot after an abbreviation does not.
func sentences(text string) []string {
	var all []string
	begin := 0
	for _, at := range sentence.FindAllStringIndex(text, -1) {
		if before := text[begin:at[0]]; strings.HasSuffix(before, "e.g") || strings.HasSuffix(before, "i.e") || strings.HasSuffix(before, " vs") {
			continue
		}
		all = append(all, strings.TrimSpace(text[begin:at[1]]))
		begin = at[1]
	}
	if rest := strings.TrimSpace(text[begin:]); rest != "" {
		all = append(all, rest)
	}
	return all
}

// count gives the words of a sentence: what has a letter or a digit.
func count(s string) int {
	n := 0
	for _, field := range strings.Fields(s) {
		if letter.MatchString(field) {
			n++
		}
	}
	return n
}
