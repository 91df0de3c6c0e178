package report

import (
	"slices"
	"strings"
)

// tones say how grave a word of event_action or event_severity is, in lower case. The service document shows few words and
// portals show others, so a word is never more than a key in here: one that is missing is shown like every other.
var tones = map[string]string{
	"block": "grave", "critical": "grave", "high": "grave",
	"warn": "warning", "error": "warning", "medium": "warning",
	"allow": "mild", "warning": "mild", "low": "mild",
	"notice": "slight", "info": "slight", "none": "slight",
}

// Tone returns grave, warning, mild or slight for a word whose meaning is known, in any letter case, and other for the
// rest.
func Tone(word string) string {
	if tone, known := tones[strings.ToLower(word)]; known {
		return tone
	}
	return "other"
}

// Colours of the style sheet: those of the tones, and the order in which words without a tone get one. Red and amber come
// last.
var (
	toneColours  = map[string]string{"grave": "--c3", "warning": "--c2", "mild": "--c1", "slight": "--c6"}
	otherColours = []string{"--c1", "--c4", "--c5", "--c7", "--c6", "--c2", "--c3"}
)

// Colours returns a colour of the style sheet for each word of a chart. No two are the same while there are colours left.
// A word gets the colour of its tone. If it has no tone, or another word has that colour, it gets a free one.
func Colours(words []string) []string {
	colours := make([]string, len(words))
	for i, word := range words {
		if colour := toneColours[Tone(word)]; !slices.Contains(colours, colour) {
			colours[i] = colour
		}
	}
	for i := range colours {
		free := slices.IndexFunc(otherColours, func(colour string) bool { return !slices.Contains(colours, colour) })
		switch {
		case colours[i] != "":
		case free < 0:
			colours[i] = otherColours[i%len(otherColours)]
		default:
			colours[i] = otherColours[free]
		}
	}
	return colours
}
