package paging

import (
	"cmp"
	"net/url"
	"strconv"
)

// pageNumbers continues by page number if no response says whether further pages exist (open point 2). It must not stop
// before the end of the collection:
//
//   - If the responses give a total, the collection ends with that many items, and not before.
//   - Without a total, an empty page, or one shorter than the first, is the last.
//   - If the second page has exactly the items of the first, the service ignores the page number, and the first page
//     was the whole collection. This does not hold if the first page was as long as the requested count: it may be
//     incomplete.
//   - A service may refuse a page past the end with 400 or 404. That is the end only if the page before it was shorter
//     than the requested count. A short page alone proves nothing, because a service may allow fewer items per page.
//   - A new item may move known ones to the next page. A page of known items only, shorter than the first, is the last.
//   - Any other page that begins like an earlier one, or has no new item, is an error.
type pageNumbers struct {
	trail   *trail
	refused func(error) bool // the error may mean that there is no such page
	count   int              // requested items per page; 0: not requested
	last    int              // items on the last page
}

// step is what to do after a page was judged.
type step int

const (
	end    step = iota // drop its items and stop
	last               // yield its items and stop
	onward             // yield its items and request the next page
)

// judge decides by the items of a page what to do next.
func (n *pageNumbers) judge(items int, known, begins bool) (step, error) {
	t := n.trail
	lacking := t.delivered < t.total
	switch {
	case items == 0 && !lacking:
		return end, nil
	case known && lacking:
		return end, t.broken("received %d of %d items, but this page has no new one", t.delivered, t.total)
	case known && t.pages == 2 && items == t.items.size && items != n.count:
		return end, nil
	case known && items < t.items.size && !begins:
		return end, nil // the last page: a new item before it moved known ones here
	case known || begins:
		return end, t.broken("the page repeats an earlier one")
	}
	n.last = items
	further := items >= t.items.size
	if t.total >= 0 {
		further = t.delivered+int64(items) < t.total
	}
	if further {
		return onward, nil
	}
	return last, nil
}

// next returns the query of the next page. index is the page_index of the last one, 0 if it had none.
func (n *pageNumbers) next(query string, index int) (string, error) {
	if limit := n.trail.maxPages; limit > 0 && n.trail.pages >= limit {
		return "", n.trail.broken("the responses do not say whether more pages follow, and MaxPages allows at most %d", limit)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", err
	}
	page := cmp.Or(index, NumberIn(query, "page"), 1)
	values.Set("page", strconv.Itoa(page+1))
	return values.Encode(), nil
}

// endWith reports whether the error of the next page means that the collection has ended.
func (n *pageNumbers) endWith(err error) bool {
	t := n.trail
	return !t.announced && t.pages > 0 && n.last < n.count && t.delivered >= t.total &&
		n.refused(err)
}
