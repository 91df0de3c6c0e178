package redact

import (
	"html"
	"strconv"
	"unicode/utf8"
)

// entity reads an entity behind its ampersand. The semicolon may be missing, because browsers accept that.
func (r *reader) entity(from cursors) {
	if sign := r.one(from, '#'); sign.size > 0 {
		r.number(sign)
	} else {
		n := name{text: [longestName + 2]byte{'&'}, size: 1}
		r.name(&n, from.all[0].to)
	}
}

// number reads a numeric entity behind its ampersand and number sign.
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

// windows1252 has the characters that browsers use for the numbers from 128 to 159.
var windows1252 = func() (chars [32]rune) {
	for i := range chars {
		chars[i], _ = utf8.DecodeRuneInString(html.UnescapeString("&#" + strconv.Itoa(128+i) + ";"))
	}
	return chars
}()

// addNumber adds the characters that a number can mean in HTML.
func (r *reader) addNumber(n, to int32) {
	r.addRune(n, to)
	if 128 <= n && n < 160 {
		r.addRune(windows1252[n-128], to)
	}
}

// longestName is the length of CounterClockwiseContourIntegral, the longest name of an entity.
const longestName = 31

// name is the name of an entity, with its ampersand and semicolon.
type name struct {
	text  [longestName + 2]byte
	ends  [longestName + 2]int32 // position behind each byte
	size  int
	tries int
}

// put sets the byte at index first to c, and ends the name there.
func (n *name) put(first int, c rune, end int32) {
	n.text[first], n.ends[first] = byte(c), end //nolint:gosec // it was a byte
	n.size = first + 1
}

// name continues a name. If its letters can be read in several ways, it tries a bounded number of them.
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

// named adds the character of a name. Without a semicolon, the name may be only the beginning of the text, as in &ampx.
func (r *reader) named(n *name) {
	n.tries++
	said := html.UnescapeString(string(n.text[:n.size]))
	c, first := utf8.DecodeRuneInString(said)
	if rest := len(said) - first; rest < n.size-1 && string(n.text[n.size-rest:n.size]) == said[first:] {
		before := len(r.steps)
		r.addRune(c, n.ends[n.size-rest-1])
		r.loosen(before, n.text[n.size-rest-1] != ';')
	} else if c != '&' { // the entity has two characters
		one := step{to: n.ends[n.size-1], size: int8(len(said))} //nolint:gosec // six at most
		copy(one.text[:], said)
		r.add(one)
	}
}
