package report

import (
	"slices"
	"strings"
)

// tones are the colours of words of event_action and event_severity, in lower case. The service document shows few
// words, and portals show others. Nothing depends on a word: the page shows unknown words like all others.
var tones = map[string]string{
	"block": grave, "critical": grave, "high": grave,
	"warn": warning, "error": warning, "medium": warning,
	"allow": mild, "warning": mild, "low": mild,
	"notice": slight, "info": slight, "none": slight,
}

// Colours of the style sheet.
const grave, warning, mild, slight, otherColour = "c3", "c2", "c1", "c6", "c9"

// freeColours are for words without a tone, in this order.
var freeColours = []string{mild, "c4", "c5", "c7", "c8", slight, warning, grave}

func tone(word string) string { return tones[strings.ToLower(word)] }

// rank returns a smaller number for a word that is more severe. Words without a tone come last.
func rank(word string) int {
	return slices.Index([]string{grave, warning, mild, slight, ""}, tone(word))
}

// colour gives each of at most eight groups of a chart the colour of its tone, or a free one.
func colour(groups []*Group) {
	used := map[string]bool{}
	for _, g := range groups {
		g.colour = tone(g.Name)
		used[g.colour] = true
	}
	for _, g := range groups {
		if g.colour == "" {
			g.colour = freeColours[slices.IndexFunc(freeColours, func(free string) bool { return !used[free] })]
			used[g.colour] = true
		}
	}
}

// Colour returns the colour of an action or severity, which is the same in all parts of the report. It returns "" for
// other dimensions, and for an unknown word that is not in a chart.
func (r *Report) Colour(dimension, word string) string {
	for _, p := range []*Panel{r.Requests, r.Sections[0].Trend} {
		if p.Dimension == dimension {
			i := slices.IndexFunc(p.Top(), func(g *Group) bool { return g.Name == word })
			if i < 0 {
				return tone(word)
			}
			return p.Groups[i].colour
		}
	}
	return ""
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
