package batch

// load collects the items of one request, without duplicates.
type load[Item comparable] struct {
	maxItems, maxBytes int
	size               func(Item) int

	items []Item
	known map[Item]bool
	bytes int
}

// add adds the items of a caller unless they make the load too large. The items of the first caller always fit.
func (l *load[Item]) add(items []Item) bool {
	if len(l.items) > 0 && !l.fits(items) {
		return false
	}
	l.put(items)
	return true
}

// fits reports whether the load stays within its limits with the items.
func (l *load[Item]) fits(items []Item) bool {
	count, bytes := len(l.items), l.bytes
	for _, item := range items {
		if !l.known[item] {
			count, bytes = count+1, bytes+l.size(item)
		}
	}
	return count <= l.maxItems && bytes <= l.maxBytes
}

func (l *load[Item]) put(items []Item) {
	for _, item := range items {
		if !l.known[item] {
			l.known[item] = true
			l.items = append(l.items, item)
			l.bytes += l.size(item)
		}
	}
}
