package redact

// automaton matches all secrets at once with the Shift-And algorithm. A set has one bit for each byte of each secret.
// The bit says that the secret was read up to this byte. A step takes a few operations on words, however many secrets
// and readings of the text there are.
type automaton struct {
	words    int      // words of a set
	masks    []uint64 // for each byte value, the set of its positions in the secrets
	starts   []uint64 // positions at which reading may begin: of a secret and of its Before
	firsts   []uint64 // first positions of the secrets, including Before
	lasts    []uint64 // last positions of the secrets
	begins   [256]bool
	shortest int // length of the shortest text to find
	filter   *filter
}

func newAutomaton(hidden []Hidden) *automaton {
	size, texts := 0, make([]string, 0, len(hidden))
	for _, h := range hidden {
		text := h.Before + h.Secret.Reveal()
		if len(text) < Least || h.Secret.Reveal() == "" {
			text = ""
		}
		texts = append(texts, text)
		size += len(text)
	}
	a := &automaton{words: (size + 63) / 64, shortest: size + 1}
	a.masks = make([]uint64, 256*a.words)
	a.starts, a.firsts, a.lasts = make([]uint64, a.words), make([]uint64, a.words), make([]uint64, a.words)
	at := 0
	for i, text := range texts {
		if text == "" {
			continue
		}
		begin := 0
		set(a.firsts, at)
		set(a.starts, at)
		if alone := len(hidden[i].Before); len(text)-alone >= Least {
			begin = alone
			set(a.starts, at+alone)
			a.begins[text[alone]] = true
		}
		a.begins[text[0]] = true
		a.shortest = min(a.shortest, len(text)-begin)
		for j := range len(text) {
			set(a.masks[int(text[j])*a.words:], at+j)
		}
		at += len(text)
		set(a.lasts, at-1)
	}
	a.filter = newFilter(hidden, a.shortest)
	return a
}

func set(bits []uint64, i int) { bits[i/64] |= 1 << (i % 64) }

func (a *automaton) mask(c byte) []uint64 { return a.masks[int(c)*a.words:][:a.words] }

// forward applies a step to the set from and writes the result to the set to; both may be the same slice. It reports
// whether the result is not empty.
func (a *automaton) forward(to, from []uint64, s *step) bool {
	if s.size == 0 && !s.any {
		copy(to, from)
		return !empty(to)
	}
	copy(to, from)
	for i := range max(int(s.size), 1) {
		carry, some := uint64(0), uint64(0)
		for w, bits := range to {
			next := (bits<<1 | carry) &^ a.firsts[w]
			carry = bits >> 63
			if !s.any { // unknown bytes continue any secret, but do not begin one
				if i == 0 {
					next |= a.starts[w]
				}
				next &= a.masks[int(s.text[i])*a.words+w]
			}
			to[w] = next
			some |= next
		}
		if some == 0 {
			return false
		}
	}
	return true
}

// backward is the reverse of forward. from is the set of bytes from which a secret can be read to its end after a step.
// to becomes that set before the step.
func (a *automaton) backward(to, from []uint64, s *step) {
	copy(to, from)
	if s.any {
		return
	}
	for i := int(s.size) - 1; i >= 0; i-- {
		a.before(to, i == int(s.size)-1)
		for w, mask := range a.mask(s.text[i]) {
			to[w] &= mask
		}
	}
}

// before replaces a set of bytes by the set of the bytes before them. If end is true, the secret may also end here.
func (a *automaton) before(bits []uint64, end bool) {
	carry := uint64(0)
	for w := a.words - 1; w >= 0; w-- {
		next := (bits[w]>>1 | carry<<63) &^ a.lasts[w]
		carry = bits[w] & 1
		if end {
			next |= a.lasts[w]
		}
		bits[w] = next
	}
}

func empty(bits []uint64) bool {
	for _, w := range bits {
		if w != 0 {
			return false
		}
	}
	return true
}

func meet(a, b []uint64) bool {
	for w := range a {
		if a[w]&b[w] != 0 {
			return true
		}
	}
	return false
}

// search is the search in one text.
type search struct {
	*automaton
	found []span // parts of the source, in any order

	// State of the current stretch: a part of a layer in which at each position some secret is partly read.
	base   int
	states []uint64 // for each position from base on, the set of the bytes read up to there
	edges  []edge   // steps other than single plain bytes that continue a secret
	one    []uint64 // a set for temporary results
}

// edge is a step and its position.
type edge struct {
	from int
	step
}

// match finds the secrets in a layer. It is fast because most bytes begin neither a secret nor an escape.
func (s *search) match(l *layer) {
	if s.one == nil {
		s.one = make([]uint64, s.words)
	}
	for p := 0; p < len(l.text); {
		if c := l.text[p]; s.begins[c] || isIntro[c] {
			p = s.stretch(l, p)
		} else {
			p++
		}
	}
}

// at returns the set at a position of the stretch.
func (s *search) at(states *[]uint64, p int) []uint64 {
	begin := (p - s.base) * s.words
	for len(*states) < begin+s.words {
		*states = append(*states, 0)
	}
	return (*states)[begin : begin+s.words]
}

// stretch reads from p on until no secret is partly read, and returns the position behind.
func (s *search) stretch(l *layer, p int) int {
	s.base, s.states, s.edges = p, s.states[:0], s.edges[:0]
	hit, last := false, p
	read := func(p int, one *step) {
		if !s.forward(s.one, s.at(&s.states, p), one) {
			return
		}
		end := int(one.to)
		to := s.at(&s.states, end)
		for w := range to {
			to[w] |= s.one[w]
		}
		last = max(last, end)
		hit = hit || meet(s.one, s.lasts) || l.cut && end == len(l.text)
		if end != p+1 || one.text[0] != l.text[p] {
			s.edges = append(s.edges, edge{p, *one})
		}
	}
	for ; p < len(l.text) && p <= last; p++ {
		plain := l.plain(p)
		read(p, &plain)
		if isIntro[l.text[p]] {
			escapes := l.escapes(p, escapesDeep)
			for i := range escapes {
				read(p, &escapes[i])
			}
		}
	}
	if hit {
		s.mark(l, last)
	}
	return p
}

// mark goes backward through a stretch. A step is part of a secret if the bytes that can be read before, within and
// after the step form the secret.
func (s *search) mark(l *layer, last int) {
	var ends []uint64 // for each position, the bytes of secrets that can be read from there to the end
	s.at(&ends, last+1)
	if l.cut && last == len(l.text) {
		for w, end := 0, s.at(&ends, last); w < len(end); w++ {
			end[w] = ^uint64(0)
		}
	}
	rest := make([]uint64, s.words)
	whole := span{last + 1, last + 1} // the connected part found last
	back := func(p int, one *step) {
		after := s.at(&ends, int(one.to))
		within := s.forward(s.one, s.at(&s.states, p), one)
		if within {
			copy(rest, after)
			s.before(rest, one.size > 0 || one.any)
			if meet(s.one, rest) {
				whole = s.extend(l, whole, p, int(one.to))
			}
		}
		s.backward(rest, after, one)
		to := s.at(&ends, p)
		for w := range to {
			to[w] |= rest[w]
		}
	}
	for p := min(last, len(l.text)-1); p >= s.base; p-- {
		for len(s.edges) > 0 && s.edges[len(s.edges)-1].from == p {
			back(p, &s.edges[len(s.edges)-1].step)
			s.edges = s.edges[:len(s.edges)-1]
		}
		plain := l.plain(p)
		back(p, &plain)
	}
	s.extend(l, whole, -1, -1)
}

// extend adds a part of a secret to the part found behind it. If the two are not connected, it records the part behind
// and begins a new one.
func (s *search) extend(l *layer, whole span, from, to int) span {
	switch {
	case whole.from >= whole.to:
		return span{from, to}
	case to < whole.from:
		s.found = append(s.found, l.span(whole.from, whole.to))
		return span{from, to}
	default:
		return span{from, max(whole.to, to)}
	}
}
