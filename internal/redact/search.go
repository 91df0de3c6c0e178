package redact

// deepest bounds how deeply Base64 texts may be nested.
const deepest = 3

// scan finds secrets and user information in a layer and in the Base64 texts in it.
func (s *search) scan(l *layer, depth int) {
	l.tabulate(escapesDeep)
	s.match(l)
	s.userinfo(l, 0)
	s.userinfo(l, escapesDeep)
	if depth == deepest {
		return
	}
	for _, inner := range s.base64(l) {
		if len(inner.text) >= s.shortest || inner.cut {
			s.scan(inner, depth+1)
		}
	}
}
