// Package invisible finds the characters that are not shown: control characters, blanks, format and direction characters,
// and fillers. A name or an address that holds one is another one than it appears to be.
//
// The package knows characters only. It must not know what a text is for. Its entry points are [Is], [Index] and [Name].
package invisible

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'

	// Unicode calls these symbols and letters, but they show nothing.
	brailleBlank      = '\u2800' // a pattern without dots
	egyptianFullBlank = '\U00013441'
	egyptianHalfBlank = '\U00013442'
	khitanFiller      = '\U00016fe4'
	nullNotehead      = '\U0001d159'
)

// Is reports whether r is a control character, a blank, or a character that is not shown. The marks before a number in
// Arabic and similar scripts are format characters, too, but they are shown.
func Is(r rune) bool {
	switch {
	case '!' <= r && r <= '~': // most texts have nothing else, and the tables of Unicode take long
		return false
	case r == brailleBlank, r == egyptianFullBlank, r == egyptianHalfBlank, r == khitanFiller, r == nullNotehead:
		return true
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	default:
		return unicode.In(r, unicode.Cc, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
}

// Index returns the index of the first invisible character in s, or -1. Some scripts and emoji need joiners (U+200C,
// U+200D) and variation selectors, so Index skips them where they change what is shown. A joiner must stand between two
// shapes, and a variation selector after one. A shape is a visible letter, mark or symbol outside ASCII.
func Index(s string) int {
	var before rune // the last visible character
	for at, r := range s {
		switch {
		case !Is(r):
			before = r
		case !isShape(before):
			return at
		case unicode.Is(unicode.Variation_Selector, r): // the shape goes on
		case (r == zeroWidthJoiner || r == zeroWidthNonJoiner) && isShape(second(s[at:])): // it is the next visible character
		default:
			return at
		}
	}
	return -1
}

// second returns the second character of s.
func second(s string) rune {
	_, size := utf8.DecodeRuneInString(s)
	r, _ := utf8.DecodeRuneInString(s[size:])
	return r
}

func isShape(r rune) bool {
	return r > unicode.MaxASCII && r != utf8.RuneError && !Is(r) && unicode.In(r, unicode.L, unicode.M, unicode.S)
}

// Name returns the kind and the number of an invisible character, for messages.
func Name(r rune) string {
	kind := "invisible character"
	switch {
	case unicode.IsControl(r):
		kind = "control character"
	case unicode.Is(unicode.Z, r):
		kind = "blank"
	}
	return fmt.Sprintf("the %s %U", kind, r)
}
