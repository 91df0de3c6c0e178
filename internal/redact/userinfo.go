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
		c, to := l.text[p], p+1
		if deep > 0 && isIntro[c] {
			for _, one := range l.escapes(p, deep) {
				if one.size == 1 && int(one.to) > to && !one.loose {
					c, to = one.text[0], int(one.to)
				}
			}
		}
		switch {
		case a.open && a.ends(c):
			end(p)
		case a.open:
			a.read(c, p)
		case c == '/' && before == [2]byte{':', '/'}:
			a = authority{open: true, begin: to}
		}
		before = [2]byte{before[1], c}
		p = to
	}
	end(len(l.text))
}

// authority is the part of a URL behind its slashes.
type authority struct {
	open      bool
	begin, at int  // behind the slashes; at the last at sign
	number    bool // a colon came, which a port may follow
	address   bool // an IPv6 address came, with its colons
	broken    bool // what follows the colon is no port, so this is a password, and it may hold slashes
}

func (a *authority) read(c byte, p int) {
	switch {
	case c == '@':
		a.at, a.number, a.broken = p, false, false
	case c == '[':
		a.address = true
	case c == ':':
		a.number = !a.address
	case a.number && !isDecimal(c):
		a.broken = true
	}
}

func (a *authority) ends(c byte) bool {
	switch c {
	case '/', '?', '#':
		return !a.broken
	case '"', '<', '>', '\\', '^', '`', '{', '|', '}':
		return true
	default:
		return c <= ' ' || c == 0x7f
	}
}
