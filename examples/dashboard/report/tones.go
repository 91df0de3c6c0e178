package report

import (
	"slices"
	"strings"
)

// tones say how severe a word of event_action or event_severity is, in lower case. The service document shows few
// words, and portals show others. Nothing depends on a word: the page shows unknown words like all others.
var tones = map[string]string{
	"block": "grave", "critical": "grave", "high": "grave",
	"warn": "warning", "error": "warning", "medium": "warning",
	"allow": "mild", "warning": "mild", "low": "mild",
	"notice": "slight", "info": "slight", "none": "slight",
}

// Tone returns grave, warning, mild or slight for a known word in any letter case, and other for an unknown word.
func Tone(word string) string {
	if tone, known := tones[strings.ToLower(word)]; known {
		return tone
	}
	return "other"
}

// The colours of the style sheet. Words without a tone get the free colours in this order, with red and amber last.
var (
	toneColours = map[string]string{"grave": "c3", "warning": "c2", "mild": "c1", "slight": "c6"}
	freeColours = []string{"c1", "c4", "c5", "c7", "c8", "c6", "c2", "c3"}
)

const otherColour = "c9"

// Colours returns a colour of the style sheet for each word of a chart. Up to eight words have different colours. A
// word gets the colour of its tone. If it has no tone, or another word has that colour, it gets a free one.
func Colours(words []string) []string {
	colours := make([]string, len(words))
	for i, word := range words {
		if colour := toneColours[Tone(word)]; !slices.Contains(colours, colour) {
			colours[i] = colour
		}
	}
	for i := range colours {
		free := slices.IndexFunc(freeColours, func(colour string) bool { return !slices.Contains(colours, colour) })
		switch {
		case colours[i] != "":
		case free < 0:
			colours[i] = freeColours[i%len(freeColours)]
		default:
			colours[i] = freeColours[free]
		}
	}
	return colours
}

// Style is how a line looks. Dash and marker differ as well as the colour, for readers who cannot tell the colours
// apart and for black-and-white print.
type Style struct {
	Colour string `json:"colour"` // of the style sheet
	Dash   []int  `json:"dash"`   // lengths of dashes and gaps; nil is a solid line
	Marker string `json:"marker"` // circle, rect, triangle or diamond
}

var (
	dashes  = [][]int{nil, {8, 4}, {2, 3}, {10, 3, 2, 3}}
	markers = []string{"circle", "rect", "triangle", "diamond"}
)

// styleOf returns the style of a line. Each of 16 lines has a different pair of dash and marker.
func styleOf(line int, colour string) Style {
	return Style{colour, dashes[(line+line/len(markers))%len(dashes)], markers[line%len(markers)]}
}
