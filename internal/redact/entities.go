package redact

import (
	"html"
	"strconv"
	"unicode/utf8"
)

// entity reads what stands behind an ampersand. The semicolon may be missing, as browsers let it.
func (r *reader) entity(from cursors) {
	if sign := r.one(from, '#'); sign.size > 0 {
		r.number(sign)
	} else {
		n := name{text: [longestName + 2]byte{'&'}, size: 1}
		r.name(&n, from.all[0].to)
	}
}

// number reads what stands behind an ampersand and a number sign.
func (r *reader) number(sign cursors) {
	number := r.digits(sign, 1, longestNumber, isDecimal, 10)
	if x := r.next(sign, func(c byte) bool { return c == 'x' || c == 'X' }); x.size > 0 {
		number = r.hex(x, 1, longestNumber)
	}
	r.addEnd(number.ended)
	for _, one := range number.list() {
		before := len(r.steps)
		closed := r.one(at(one.to), ';')
		for _, end := range closed.list() {
			r.addNumber(one.n, end.to)
		}
		if closed.size == 0 {
			r.addNumber(one.n, one.to)
			r.loosen(before, true)
		}
	}
}

// windows1252 are the characters that browsers read numbers from 128 to 159 as.
var windows1252 = func() (chars [32]rune) {
	for i := range chars {
		chars[i], _ = utf8.DecodeRuneInString(html.UnescapeString("&#" + strconv.Itoa(128+i) + ";"))
	}
	return chars
}()

// addNumber adds the character of a number in HTML.
func (r *reader) addNumber(n, to int32) {
	r.addRune(n, to)
	if 128 <= n && n < 160 {
		r.addRune(windows1252[n-128], to)
	}
}

// longestName is the length of CounterClockwiseContourIntegral, the longest name of an entity.
const longestName = 31

// name is that of an entity, with the ampersand and the semicolon.
type name struct {
	text  [longestName + 2]byte
	ends  [longestName + 2]int32 // positions behind each byte
	size  int
	tries int
}

// put makes c the byte behind the first ones, and the last.
func (n *name) put(first int, c rune, end int32) {
	n.text[first], n.ends[first] = byte(c), end //nolint:gosec // it was a byte
	n.size = first + 1
}

// name reads on in a name. Its letters may be read in more than one way, and some ways are tried.
func (r *reader) name(n *name, from int32) {
	const most = 16
	if n.tries == most {
		return
	}
	var letters cursors
	if n.size <= longestName {
		letters = r.next(at(from), isAlnum)
		r.addEnd(letters.ended)
	}
	size := n.size
	for _, one := range letters.list() {
		n.put(size, one.n, one.to)
		r.name(n, one.to)
	}
	closed := r.one(at(from), ';')
	for _, one := range closed.list() {
		n.put(size, one.n, one.to)
		r.named(n)
	}
	if letters.size+closed.size == 0 {
		r.named(n)
	}
}

// named adds the character of a name. What follows a name without a semicolon stays as it is.
func (r *reader) named(n *name) {
	n.tries++
	said := html.UnescapeString(string(n.text[:n.size]))
	c, first := utf8.DecodeRuneInString(said)
	if rest := len(said) - first; rest < n.size-1 && string(n.text[n.size-rest:n.size]) == said[first:] {
		before := len(r.steps)
		r.addRune(c, n.ends[n.size-rest-1])
		r.loosen(before, n.text[n.size-rest-1] != ';')
	} else if c != '&' { // it has two characters
		one := step{to: n.ends[n.size-1], size: int8(len(said))} //nolint:gosec // six at most
		copy(one.text[:], said)
		r.add(one)
	}
}
