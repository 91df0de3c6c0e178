package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// since lists what is broken since the surface in a file.
func since(file string, now []string) ([]string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, err
	}
	return broken(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), now), nil
}

// broken lists the lines of old that are not in now, with a minus. After each it lists the line that replaces it, with
// a plus. A new line alone breaks no program, unless it adds a method to an interface that users implement.
func broken(old, now []string) []string {
	became := make(map[string]string, len(now)) // the new lines, by name
	for _, line := range now {
		if !slices.Contains(old, line) {
			became[name.FindString(line)] = line
		}
	}
	var lines []string
	for _, line := range old {
		if slices.Contains(now, line) || strings.Contains(line, ", and unexported ") {
			continue // a line that says unexported members exist; its removal breaks no program
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

// name returns the part of a line that stays the same if a type or a value changes.
var name = regexp.MustCompile(`^pkg \w+, (?:(?:const|var|func) \w+|method \(.*?\) \w+|type \w+(?:\[.*?\])?(?: (?:struct|interface), \w+)?)`)

// compatible returns whether a change of a line breaks no program. There are two such changes: another version of the
// SDK, as in each release, and more types to choose from.
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

// asks returns whether a line adds a method to an interface that users can implement: one without unexported methods
// that is not a type constraint.
func asks(line string, old []string) bool {
	i, _, ok := strings.Cut(line, " interface, ")
	if !ok || !slices.Contains(old, i+" interface") {
		return false
	}
	return !slices.ContainsFunc(old, func(o string) bool {
		return o == i+" interface, and unexported methods" || strings.HasPrefix(o, i+" interface, one of ")
	})
}
