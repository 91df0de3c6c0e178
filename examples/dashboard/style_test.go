package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// luminance returns the relative luminance of a colour such as #fff or #1a2230, by the definition of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	if len(colour) == 4 {
		colour = fmt.Sprintf("#%[1]c%[1]c%[2]c%[2]c%[3]c%[3]c", colour[1], colour[2], colour[3])
	}
	require.Len(t, colour, 7)
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		part, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c := float64(part) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	one, other := luminance(t, a), luminance(t, b)
	return (max(one, other) + 0.05) / (min(one, other) + 0.05)
}

// Lines, bars and the edges of fields have a contrast of 3:1 to their ground, and texts have 4.5:1, in light and
// dark.
func TestContrast(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 21, contrast(t, "#fff", "#000"), 0.001)
	assert.InDelta(t, 4.48, contrast(t, "#777777", "#ffffff"), 0.005) // known from WCAG literature
	type pair struct{ front, ground string }
	least := map[pair]float64{}
	for i := range 9 {
		least[pair{fmt.Sprintf("--c%d", i+1), "--card"}] = 3
		least[pair{fmt.Sprintf("--c%d", i+1), "--shade"}] = 3
	}
	for _, ground := range []string{"--page", "--card"} {
		least[pair{"--edge", ground}] = 3
		least[pair{"--text", ground}] = 4.5
		least[pair{"--soft", ground}] = 4.5
	}
	for _, p := range []pair{
		{"--soft", "--gone"},
		{"--text", "--bad-soft"},
		{"--soft", "--bad-soft"},
		{"--bad", "--bad-soft"},
		{"--text", "--mark"},
		{"--on-accent", "--accent"},
		{"--bad", "--card"},
		{"--warn", "--card"},
		{"--accent", "--card"},
	} {
		least[p] = 4.5
	}
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllStringSubmatch(file("assets/style.css"), -1)
	require.Len(t, blocks, 2)
	for i, theme := range []string{"light", "dark"} {
		colours := map[string]string{}
		for _, declaration := range regexp.MustCompile(`(--[a-z0-9-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(blocks[i][1], -1) {
			colours[declaration[1]] = declaration[2]
		}
		for p, want := range least {
			assert.GreaterOrEqual(t, contrast(t, colours[p.front], colours[p.ground]), want, "%s: %v", theme, p)
		}
	}
}
