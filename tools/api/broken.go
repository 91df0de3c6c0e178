package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// since is what is broken of the surface that stands in a file.
func since(file string, now []string) ([]string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller names it
	if err != nil {
		return nil, err
	}
	return broken(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), now), nil
}

// broken lists the lines of old that now has no more, with a minus before them, and after each what has come in its place,
// with a plus. A new line alone breaks nobody, unless it asks more of an interface that users implement.
func broken(old, now []string) []string {
	became := make(map[string]string, len(now)) // the lines that have come, by name
	for _, line := range now {
		if !slices.Contains(old, line) {
			became[name.FindString(line)] = line
		}
	}
	var lines []string
	for _, line := range old {
		if slices.Contains(now, line) || strings.Contains(line, ", and unexported ") {
			continue // that nothing is hidden any more takes nothing from anybody
		}
		in := became[name.FindString(line)]
		if in != "" && compatible(line, in) {
			continue
		}
		lines = append(lines, "- "+line)
		if in != "" {
			lines = append(lines, "+ "+in)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) && asks(line, old) && !slices.Contains(lines, "+ "+line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}

// name is what of a line stays when a type or a value changes.
var name = regexp.MustCompile(`^pkg \w+, (?:(?:const|var|func) \w+|method \(.*?\) \w+|type \w+(?:\[.*?\])?(?: (?:struct|interface), \w+)?)`)

// compatible knows the two changes of a line that break nobody: another version of the SDK, which each release has, and
// more types to choose from.
func compatible(old, now string) bool {
	const version = "pkg webdelivery, const Version untyped string = "
	if strings.HasPrefix(old, version) && strings.HasPrefix(now, version) {
		return true
	}
	before, choice, ok := strings.Cut(old, " interface, one of ")
	if !ok {
		return false
	}
	choices := strings.Split(strings.TrimPrefix(now, before+" interface, one of "), " | ")
	return !slices.ContainsFunc(strings.Split(choice, " | "), func(t string) bool { return !slices.Contains(choices, t) })
}

// asks tells whether a line adds to an interface that anybody could implement: one without unexported methods that is no
// choice of types.
func asks(line string, old []string) bool {
	i, _, ok := strings.Cut(line, " interface, ")
	if !ok || !slices.Contains(old, i+" interface") {
		return false
	}
	return !slices.ContainsFunc(old, func(o string) bool {
		return o == i+" interface, and unexported methods" || strings.HasPrefix(o, i+" interface, one of ")
	})
}
