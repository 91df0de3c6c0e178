package redact

// userinfo finds user names and passwords in URLs: what stands between the slashes and the last at sign. Escapes are
// read as far as they go, or not at all if deep is 0.
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

// readURL returns the character of a URL that begins at p, and the place behind it. It is the one of the longest escape,
// if there is one.
func (l *layer) readURL(p, deep int) (c byte, to int) {
	c, to = l.text[p], p+1
	if deep == 0 || !isIntro[c] {
		return c, to
	}
	for _, one := range l.escapes(p, deep) {
		// =3A and =2F are read although an equals sign is seldom one of an escape: they can begin a URL.
		if one.size == 1 && int(one.to) > to && (!one.loose || l.text[p] == '=' && (one.text[0] == ':' || one.text[0] == '/')) {
			c, to = one.text[0], int(one.to)
		}
	}
	return c, to
}

// authority is the part of a URL behind its slashes.
type authority struct {
	open      bool
	bare      bool // no scheme stands before the slashes, so this may be no URL
	raw       bool // escapes are not read
	begin, at int  // behind the slashes; at the last at sign
	colon     bool // one came, so this may be a name and a password
	listed    bool // no colon came, but what also separates one address from the next text
	number    bool // a colon came, which a port may follow
	address   bool // an IPv6 address came, with its colons
	broken    bool // what follows the colon is no port, so this is a password, and it may hold slashes
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

// ends reports whether the authority ends before a character. A password may hold what should be escaped in a URL. Only a
// quote, a blank and the like end it, and these not if an escape says that they are a part of it.
func (a *authority) ends(c byte, escaped bool) bool {
	switch c {
	case '/', '?', '#':
		return !a.broken
	case '\\', '^', '`', '{', '|', '}':
		return !a.broken && !a.number
	case '&':
		return a.raw && a.number && !a.broken // what reads the escapes knows whether this is a quote behind a port
	case '"', '<', '>':
		return !a.broken || !escaped
	default:
		return c <= ' ' || c == 0x7f
	}
}
