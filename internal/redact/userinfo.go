package redact

// userinfo finds user names and passwords in URLs: the text between the slashes and the last at sign. It decodes
// escapes, unless deep is 0.
func (s *search) userinfo(l *layer, deep int) {
	var a authority
	var before [2]byte
	end := func(p int) {
		switch {
		case a.at > a.begin:
			s.found = append(s.found, l.span(a.begin, a.at))
		case a.open && a.broken && l.cut && p == len(l.text) && p > a.begin:
			s.found = append(s.found, l.span(a.begin, p))
		}
		a = authority{}
	}
	for p := 0; p < len(l.text); {
		c, to := l.readURL(p, deep)
		escaped := to > p+1
		switch {
		case a.open && c == '/' && p == a.begin: // a third slash
			a.begin = to
		case a.open && a.ends(c, escaped):
			end(p)
		case a.open:
			a.read(c, p)
		}
		if !a.open && c == '/' && before[1] == '/' {
			a = authority{open: true, begin: to, bare: before[0] != ':', raw: deep == 0}
		}
		before = [2]byte{before[1], c}
		p = to
	}
	end(len(l.text))
}

// readURL returns the character at p of a URL, and the position behind it. If escapes begin at p, it decodes the
// longest one.
func (l *layer) readURL(p, deep int) (c byte, to int) {
	c, to = l.text[p], p+1
	if deep == 0 || !isIntro[c] {
		return c, to
	}
	for _, one := range l.escapes(p, deep) {
		// An equals sign seldom begins an escape, but =3A and =2F may be the beginning of a URL.
		if one.size == 1 && int(one.to) > to && (!one.loose || l.text[p] == '=' && (one.text[0] == ':' || one.text[0] == '/')) {
			c, to = one.text[0], int(one.to)
		}
	}
	return c, to
}

// authority is the part of a URL behind its slashes.
type authority struct {
	open      bool
	bare      bool // without a scheme before the slashes, so this may not be a URL
	raw       bool // escapes are not decoded
	begin, at int  // position behind the slashes; position of the last at sign
	colon     bool // has a colon, so this may be a name and a password
	listed    bool // has no colon, but a separator that may end an address in a text
	number    bool // the last colon may begin a port
	address   bool // has an IPv6 address, whose colons do not count
	broken    bool // the text behind the colon is not a port, so it is a password, which may contain slashes
}

func (a *authority) read(c byte, p int) {
	switch {
	case c == '@':
		if a.colon || !a.bare && !a.listed {
			a.at = p
		}
		a.number, a.broken = false, false
	case c == '[':
		a.address = true
	case c == ':':
		a.colon = a.colon || !a.address
		a.number = !a.address
	case a.number && !isDecimal(c):
		a.broken = true
	case (c == ',' || c == '&') && !a.colon:
		a.listed = true
	}
}

// ends reports whether the authority ends before a character. A password may contain characters that a URL should
// escape. Only blanks, control characters, quotes and angle brackets end a password, and escaped quotes and brackets do
// not.
func (a *authority) ends(c byte, escaped bool) bool {
	switch c {
	case '/', '?', '#':
		return !a.broken
	case '\\', '^', '`', '{', '|', '}':
		return !a.broken && !a.number
	case '&':
		return a.raw && a.number && !a.broken // if escapes are decoded, &quot; behind a port is a quote instead
	case '"', '<', '>':
		return !a.broken || !escaped
	default:
		return c <= ' ' || c == 0x7f
	}
}
