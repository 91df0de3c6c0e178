package redact

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// escapesDeep bounds how deeply escapes may be nested: the characters of an escape may be escapes themselves.
const escapesDeep = 3

// step is one way to read a part of a text: up to the position to, decoded as text.
type step struct {
	to    int32
	text  [longestStep]byte
	size  int8 // number of bytes; 0 for an escape that decodes to nothing, such as a soft line break
	any   bool // the text was cut off within this escape, so it may mean anything
	loose bool // may not be an escape, or may be only the beginning of a nested one
}

// longestStep is the length in bytes of the longest entity of two characters.
const longestStep = 6

// isIntro has the bytes with which an escape begins.
var isIntro = [256]bool{'\\': true, '%': true, '&': true, '=': true, '+': true, '~': true}

// plain reads a byte as itself.
func (l *layer) plain(p int) step { return ascii(l.text[p], int32(p+1)) } //nolint:gosec // no text is that long

func ascii(c byte, to int32) step { return step{text: [longestStep]byte{c}, size: 1, to: to} }

// table has the escapes of a text. Those at p are steps[begin[p]:begin[p+1]].
type table struct {
	begin []int32
	steps []step
}

// escapes returns all readings of an escape at p with a nesting of up to deep.
func (l *layer) escapes(p, deep int) []step {
	t := &l.tables[deep]
	if len(t.steps) == 0 {
		return nil
	}
	return t.steps[t.begin[p]:t.begin[p+1]]
}

// tabulate reads the escapes of a text. They begin with \ (JSON, Go, C, JavaScript), with % or + (URLs, forms), with &
// (XML, HTML), with = (quoted-printable) or with ~ (JSON pointers). The work is linear in the length of the text:
// tabulate reads it once for each depth, and the length of an escape is bounded.
func (l *layer) tabulate(most int) {
	if l.tables[most].begin != nil || !slices.ContainsFunc(l.text, func(c byte) bool { return isIntro[c] }) {
		return
	}
	for deep := 1; deep <= most; deep++ {
		if deep > 1 && len(l.tables[deep-1].steps) == len(l.tables[deep-2].steps) {
			l.tables[deep] = l.tables[deep-1] // no escape is nested more deeply
			continue
		}
		begin := make([]int32, len(l.text)+1)
		r := reader{layer: l, deep: deep - 1}
		for p, c := range l.text {
			if isIntro[c] {
				r.escape(p)
			}
			begin[p+1] = int32(len(r.steps)) //nolint:gosec // no text is that long
		}
		l.tables[deep] = table{begin, r.steps}
	}
}

// reader reads escapes whose parts may be escapes of a lower depth.
type reader struct {
	*layer
	deep  int
	steps []step
	first int // index of the first step at the current position
}

// escape adds the escapes at p.
func (r *reader) escape(p int) {
	r.first = len(r.steps)
	intros := r.escapes(p, r.deep)
	r.steps = append(r.steps, intros...)
	r.behind(r.plain(p))
	for _, intro := range intros {
		if intro.size == 1 && isIntro[intro.text[0]] {
			r.behind(intro)
		}
	}
}

// behind reads the rest of an escape behind its first character.
func (r *reader) behind(intro step) {
	switch from := at(intro.to); intro.text[0] {
	case '\\':
		r.backslash(from)
	case '%':
		r.percent(from)
	case '&':
		r.entity(from)
	case '=':
		r.quotedPrintable(from)
	case '~':
		r.pointer(from)
	default: // a plus sign
		r.addLoose(ascii(' ', intro.to))
	}
}

// add adds a step unless it is already there.
func (r *reader) add(one step) {
	if !slices.Contains(r.steps[r.first:], one) {
		r.steps = append(r.steps, one)
	}
}

// addLoose adds a loose step.
func (r *reader) addLoose(one step) {
	one.loose = true
	r.add(one)
}

// loosen sets loose for the steps from first on.
func (r *reader) loosen(first int, loose bool) {
	for i := first; i < len(r.steps); i++ {
		r.steps[i].loose = loose
	}
}

// addRune adds a character if the number is a valid one.
func (r *reader) addRune(c rune, to int32) {
	if utf8.ValidRune(c) {
		one := step{to: to}
		one.size = int8(utf8.EncodeRune(one.text[:], c)) //nolint:gosec // at most four
		r.add(one)
	}
}

// addBytes adds bytes. Some encoders mean them as bytes of UTF-8, others as characters of Latin-1, so it adds both.
func (r *reader) addBytes(all cursors) {
	for _, one := range all.list() {
		r.add(ascii(byte(one.n), one.to)) //nolint:gosec // two digits
		if one.n >= utf8.RuneSelf {
			r.addRune(one.n, one.to)
		}
	}
	r.addEnd(all.ended)
}

func (r *reader) addRunes(all cursors) {
	for _, one := range all.list() {
		r.addRune(one.n, one.to)
	}
	r.addEnd(all.ended)
}

// addEnd adds the step of an escape in which a cut-off text ends.
func (r *reader) addEnd(ended bool) {
	if ended && r.cut {
		r.add(step{to: int32(len(r.text)), any: true}) //nolint:gosec // no text is that long
	}
}

// cursor is the position up to which a part of an escape was read, and the number or byte that was read.
type cursor struct {
	n  rune
	to int32
}

// cursors are all positions up to which the same part can be read. There is seldom more than one.
type cursors struct {
	all   [8]cursor
	size  int
	ended bool // the text may end in this part
}

func at(to int32) cursors { return cursors{all: [8]cursor{{to: to}}, size: 1} }

func (s *cursors) list() []cursor { return s.all[:s.size] }

func (s *cursors) put(n rune, to int32) {
	if one := (cursor{n, to}); s.size < len(s.all) && !slices.Contains(s.list(), one) {
		s.all[s.size] = one
		s.size++
	}
}

// next reads a byte that good accepts.
func (r *reader) next(from cursors, good func(byte) bool) cursors {
	to := cursors{ended: from.ended}
	for _, one := range from.list() {
		r.readOn(&to, one, good, 0, escapesDeep)
	}
	return to
}

// readOn is next for one cursor. Up to lines soft line breaks may precede the byte: each quoted-printable encoding may
// add one.
func (r *reader) readOn(to *cursors, from cursor, good func(byte) bool, base rune, lines int) {
	r.reads++
	p := int(from.to)
	if p == len(r.text) {
		to.ended = true
		return
	}
	put := func(c byte, end int32) {
		switch {
		case !good(c):
		case base == 0:
			to.put(rune(c), end)
		default:
			to.put(min(from.n*base+digit(c), utf8.MaxRune+1), end) // the maximum is not a character, so it is ignored
		}
	}
	put(r.text[p], from.to+1)
	for _, one := range r.escapes(p, r.deep) {
		switch {
		case one.any:
			to.ended = true
		case one.size == 1:
			put(one.text[0], one.to)
		case one.size == 0 && lines > 0:
			r.readOn(to, cursor{from.n, one.to}, good, base, lines-1)
		}
	}
}

// one reads a certain byte.
func (r *reader) one(from cursors, want byte) cursors {
	return r.next(from, func(c byte) bool { return c == want })
}

// longestNumber bounds the digits of a number of any length. Longer ones with leading zeros are not read. Otherwise the
// work could be quadratic: a text of digits would be a number from each of its bytes on.
const longestNumber = 20

// digits reads a number with least to most digits, to the base 8, 10 or 16.
func (r *reader) digits(from cursors, least, most int, good func(byte) bool, base rune) cursors {
	for i := range from.list() {
		from.all[i].n = 0
	}
	return r.moreDigits(from, least, most, good, base)
}

// moreDigits continues a number. A number ends where no digit follows. It may end in one reading of the text and
// continue in another.
func (r *reader) moreDigits(from cursors, least, most int, good func(byte) bool, base rune) cursors {
	var whole cursors
	for i := 0; i < most && from.size > 0; i++ {
		to := cursors{ended: from.ended}
		for _, one := range from.list() {
			had := to.size
			r.readOn(&to, one, good, base, escapesDeep)
			if i >= least && to.size == had {
				whole.put(one.n, one.to)
			}
		}
		from = to
	}
	for _, one := range from.list() {
		whole.put(one.n, one.to)
	}
	whole.ended = from.ended
	return whole
}

func (r *reader) hex(from cursors, least, most int) cursors {
	return r.digits(from, least, most, isHex, 16)
}

func isOctal(c byte) bool   { return '0' <= c && c <= '7' }
func isDecimal(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool     { return isDecimal(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
func isAlnum(c byte) bool   { return isDecimal(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func digit(c byte) rune {
	if isDecimal(c) {
		return rune(c - '0')
	}
	return rune(c|0x20-'a') + 10
}

// backslash reads an escape behind its backslash.
func (r *reader) backslash(from cursors) {
	r.lineEnd(from)
	all := r.next(from, func(c byte) bool { return ' ' <= c && c < 0x7f })
	for _, one := range all.list() {
		switch c := byte(one.n); c { //nolint:gosec // it was one
		case 'u':
			r.unicode(at(one.to), '\\')
		case 'U':
			r.addRunes(r.hex(at(one.to), 8, 8))
		case 'x':
			r.addBytes(r.hex(at(one.to), 2, 2))
			r.addNumbers(r.hex(at(one.to), 3, longestNumber)) // C reads all digits
		case '0', '1', '2', '3', '4', '5', '6', '7':
			r.octal(c, one.to)
		case 'n':
			r.add(ascii('\n', one.to))
		case 'r':
			r.add(ascii('\r', one.to))
		case 't':
			r.add(ascii('\t', one.to))
		case 'b', 'f', 'v': // characters that no secret has
		case '"', '\'', '/', '\\':
			r.add(ascii(c, one.to))
		default: // escaped by shells, regular expressions or JavaScript
			r.addLoose(ascii(c, one.to))
		}
	}
}

// octal reads an octal number behind its first digit. It has three digits in most languages, and one to three in C and
// JavaScript.
func (r *reader) octal(first byte, to int32) {
	from := cursors{all: [8]cursor{{n: digit(first), to: to}}, size: 1}
	if first > '3' {
		r.addNumbers(r.moreDigits(from, 0, 1, isOctal, 8)) // a third digit would exceed a byte
		return
	}
	r.addBytes(r.moreDigits(from, 2, 2, isOctal, 8))
	r.addNumbers(r.moreDigits(from, 0, 2, isOctal, 8)) // numbers of three digits are there already and stay not loose
}

// addNumbers adds numbers of any length: as bytes if they are small enough, otherwise as characters. They are loose,
// because the next digit may be an escape.
func (r *reader) addNumbers(all cursors) {
	before := len(r.steps)
	var small cursors
	for _, one := range all.list() {
		if one.n < 1<<8 {
			small.put(one.n, one.to)
		} else {
			r.addRune(one.n, one.to)
		}
	}
	small.ended = all.ended
	r.addBytes(small)
	r.loosen(before, true)
}

// lineEnd reads the line end of a soft line break.
func (r *reader) lineEnd(from cursors) {
	feed := r.one(from, '\n')
	if feed.size == 0 {
		feed = r.one(r.one(from, '\r'), '\n')
	}
	for _, one := range feed.list() {
		r.add(step{to: one.to})
	}
	r.addEnd(feed.ended)
}

// pointer reads an escape of a JSON pointer behind its tilde.
func (r *reader) pointer(from cursors) {
	all := r.next(from, func(c byte) bool { return c == '0' || c == '1' })
	for _, one := range all.list() {
		r.addLoose(ascii("~/"[one.n-'0'], one.to))
	}
	r.addEnd(all.ended)
}

// unicode reads an escape behind \u or %u: four digits, two such escapes for a surrogate pair, or digits in braces.
func (r *reader) unicode(from cursors, intro byte) {
	if open := r.one(from, '{'); open.size > 0 {
		number := r.hex(open, 1, longestNumber)
		for _, one := range number.list() {
			closed := r.one(at(one.to), '}')
			for _, end := range closed.list() {
				r.addRune(one.n, end.to)
			}
			r.addEnd(closed.ended)
		}
		r.addEnd(number.ended)
	}
	high := r.hex(from, 4, 4)
	r.addRunes(high)
	for _, one := range high.list() {
		if utf16.IsSurrogate(one.n) {
			low := r.hex(r.one(r.one(at(one.to), intro), 'u'), 4, 4)
			for i := range low.list() {
				if low.all[i].n = utf16.DecodeRune(one.n, low.all[i].n); low.all[i].n == utf8.RuneError {
					low.all[i].n = -1
				}
			}
			r.addRunes(low)
		}
	}
}

// percent reads an escape behind its percent sign.
func (r *reader) percent(from cursors) {
	if u := r.one(from, 'u'); u.size > 0 {
		r.unicode(u, '%')
	}
	r.addBytes(r.hex(from, 2, 2))
}

// mostBlanks bounds the blanks between the equals sign of a soft line break and the line end. It is the longest line of
// quoted-printable.
const mostBlanks = 76

// quotedPrintable reads an escape behind its equals sign: two digits, or a soft line break.
func (r *reader) quotedPrintable(from cursors) {
	for end, blanks := from, 0; end.size > 0 && blanks < mostBlanks; blanks++ {
		r.lineEnd(end)
		end = r.next(end, func(c byte) bool { return c == ' ' || c == '\t' })
	}
	before := len(r.steps)
	r.addBytes(r.hex(from, 2, 2))
	r.loosen(before, true)
}
