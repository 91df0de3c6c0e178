package redact

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// An escape may be written with escapes, up to so many times.
const escapesDeep = 3

// step is one way to read on in a text: up to the position to, as these bytes.
type step struct {
	to    int32
	text  [longestStep]byte
	size  int8 // number of bytes; 0 for what stands for nothing, as the end of a line that goes on
	any   bool // a text that is cut off ends in this escape, so it may stand for anything
	loose bool // an escape that may well be none, or only the beginning of one that is written with others
}

// longestStep is the length of the longest entity that has two characters.
const longestStep = 6

// isIntro tells the bytes with which an escape begins.
var isIntro = [256]bool{'\\': true, '%': true, '&': true, '=': true, '+': true, '~': true}

// plain reads a byte as itself.
func (l *layer) plain(p int) step { return ascii(l.text[p], int32(p+1)) } //nolint:gosec // no text is that long

func ascii(c byte, to int32) step { return step{text: [longestStep]byte{c}, size: 1, to: to} }

// table has the escapes of a text: those at p are steps[begin[p]:begin[p+1]].
type table struct {
	begin []int32
	steps []step
}

// escapes returns all ways in which an escape can be read at p that is written with less than so many others.
func (l *layer) escapes(p, deep int) []step {
	t := &l.tables[deep]
	if len(t.steps) == 0 {
		return nil
	}
	return t.steps[t.begin[p]:t.begin[p+1]]
}

// tabulate reads the escapes of a text: those of JSON, Go, C and JavaScript (\), of URLs and forms (% and +), of XML
// and HTML (&), of quoted-printable (=) and of JSON pointers (~). It goes over the text once for each depth, and no escape
// is longer than a bound, so the work is linear in the length of the text.
func (l *layer) tabulate(most int) {
	if l.tables[most].begin != nil || !slices.ContainsFunc(l.text, func(c byte) bool { return isIntro[c] }) {
		return
	}
	for deep := 1; deep <= most; deep++ {
		if deep > 1 && len(l.tables[deep-1].steps) == len(l.tables[deep-2].steps) {
			l.tables[deep] = l.tables[deep-1] // no escape is written with others
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

// reader reads escapes whose parts may be escapes of less depth.
type reader struct {
	*layer
	deep  int
	steps []step
	first int // of the steps at the position under way
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

// behind reads what stands behind the first character of an escape.
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

// add adds a step that is not there yet.
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

// loosen makes the steps from one on loose.
func (r *reader) loosen(first int, loose bool) {
	for i := first; i < len(r.steps); i++ {
		r.steps[i].loose = loose
	}
}

// addRune adds a character, if the number is one.
func (r *reader) addRune(c rune, to int32) {
	if utf8.ValidRune(c) {
		one := step{to: to}
		one.size = int8(utf8.EncodeRune(one.text[:], c)) //nolint:gosec // at most four
		r.add(one)
	}
}

// addBytes adds bytes, which some writers mean as bytes of UTF-8 and others as characters of Latin-1.
func (r *reader) addBytes(all cursors) {
	for _, one := range all.list() {
		r.add(ascii(byte(one.n), one.to)) //nolint:gosec // two digits
		if one.n >= utf8.RuneSelf {
			r.addRune(one.n, one.to)
		}
	}
	r.addEnd(all.ended)
}

// addRunes adds characters.
func (r *reader) addRunes(all cursors) {
	for _, one := range all.list() {
		r.addRune(one.n, one.to)
	}
	r.addEnd(all.ended)
}

// addEnd adds the step of an escape that the text ends in.
func (r *reader) addEnd(ended bool) {
	if ended && r.cut {
		r.add(step{to: int32(len(r.text)), any: true}) //nolint:gosec // no text is that long
	}
}

// cursor is a place up to which a part of an escape was read, and what was read: a number or a byte.
type cursor struct {
	n  rune
	to int32
}

// cursors are all places up to which the same part can be read. There is seldom more than one.
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

// next reads a byte for which good holds.
func (r *reader) next(from cursors, good func(byte) bool) cursors {
	to := cursors{ended: from.ended}
	for _, one := range from.list() {
		r.readOn(&to, one, good, 0, escapesDeep)
	}
	return to
}

// readOn is next from one place. Before the byte so many lines may end that go on: one for each quoted-printable writer.
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
			to.put(min(from.n*base+digit(c), utf8.MaxRune+1), end) // which is no character
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

// longestNumber bounds the digits of a number that has no length of its own. A longer one, which begins with zeros, is not
// read: the digits may be escapes themselves, so a text could be one number from each of its bytes on.
const longestNumber = 20

// digits reads a number of at least so many digits, and at most so many, to the base 8, 10 or 16.
func (r *reader) digits(from cursors, least, most int, good func(byte) bool, base rune) cursors {
	for i := range from.list() {
		from.all[i].n = 0
	}
	return r.moreDigits(from, least, most, good, base)
}

// moreDigits reads on in a number. A number ends where no digit follows. In one reading of the text it may end where it
// goes on in another one.
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

// backslash reads what stands behind a backslash.
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
			r.addNumbers(r.hex(at(one.to), 3, longestNumber)) // of C, which reads all digits
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
		default: // what shells, regular expressions and JavaScript escape
			r.addLoose(ascii(c, one.to))
		}
	}
}

// octal reads the digits of a number that begins with one. It has three digits in most languages, and one to three in C
// and JavaScript.
func (r *reader) octal(first byte, to int32) {
	from := cursors{all: [8]cursor{{n: digit(first), to: to}}, size: 1}
	if first > '3' {
		r.addNumbers(r.moreDigits(from, 0, 1, isOctal, 8)) // a byte has no more
		return
	}
	r.addBytes(r.moreDigits(from, 2, 2, isOctal, 8))
	r.addNumbers(r.moreDigits(from, 0, 2, isOctal, 8)) // what has three is there already, and stays as it is
}

// addNumbers adds numbers of any length: bytes if they are small enough, and otherwise characters. They are loose, as the
// next digit may be an escape.
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

// lineEnd reads the end of a line behind the sign that the line goes on in the next one.
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

// pointer reads what stands behind a tilde in a JSON pointer.
func (r *reader) pointer(from cursors) {
	all := r.next(from, func(c byte) bool { return c == '0' || c == '1' })
	for _, one := range all.list() {
		r.addLoose(ascii("~/"[one.n-'0'], one.to))
	}
	r.addEnd(all.ended)
}

// unicode reads what stands behind \u or %u: four digits, twice for what has two units in UTF-16, or digits in braces.
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

// percent reads what stands behind a percent sign.
func (r *reader) percent(from cursors) {
	if u := r.one(from, 'u'); u.size > 0 {
		r.unicode(u, '%')
	}
	r.addBytes(r.hex(from, 2, 2))
}

// mostBlanks bounds the blanks between the sign that a line goes on and its end. No line of quoted-printable is longer.
const mostBlanks = 76

// quotedPrintable reads what stands behind an equals sign: two digits, or the end of a line that goes on in the next.
func (r *reader) quotedPrintable(from cursors) {
	for end, blanks := from, 0; end.size > 0 && blanks < mostBlanks; blanks++ {
		r.lineEnd(end)
		end = r.next(end, func(c byte) bool { return c == ' ' || c == '\t' })
	}
	before := len(r.steps)
	r.addBytes(r.hex(from, 2, 2))
	r.loosen(before, true)
}
