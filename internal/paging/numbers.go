package paging

import (
	"cmp"
	"net/url"
	"strconv"
)

// pageNumbers reads on by page number where no reply says whether further pages exist (open point 2). It asks for page
// after page and must not take for the end what may be none:
//
//   - If the replies give a total, the collection ends with that many items, and not before.
//   - An empty page, or one shorter than the first, is the last.
//   - If the second page has exactly the items of the first, the service ignores the number of the page, and the first
//     page was all. A first page of exactly as many items as were asked for may have been cut, and proves nothing.
//   - A service may refuse a page past the end with 400 or 404. That is the end only if the page before it was shorter
//     than the count that was asked for. Such a page alone is no proof: a service may allow fewer items a page.
//   - A new item may move known ones to the next page. One with nothing else, and shorter than the first, is the last.
//   - Any other page that begins like an earlier one, or that has no new item, is an error.
type pageNumbers struct {
	trail   *trail
	refused func(error) bool // there may be no such page
	count   int              // items a page that were asked for; 0: none
	last    int              // items of the last page
}

// step is what follows a page that has been judged.
type step int

const (
	end    step = iota // the page has nothing new, and none follows
	last               // its items are to be handed out, and none follows
	onward             // its items are to be handed out, and another page is to be asked for
)

// judge says by its items what follows a page.
func (n *pageNumbers) judge(items int, known, begins bool) (step, error) {
	t := n.trail
	lacking := t.delivered < t.total
	switch {
	case items == 0 && !lacking:
		return end, nil
	case known && lacking:
		return end, t.broken("%d of %d items came, and this page has no other", t.delivered, t.total)
	case known && t.pages == 2 && items == t.items.size && items != n.count:
		return end, nil
	case known && items < t.items.size && !begins:
		return end, nil // the last page, moved on by a new item before it
	case known || begins:
		return end, t.broken("it repeats an earlier page")
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

// next gives the query of the next page. index is the page_index of the last one, 0 without.
func (n *pageNumbers) next(query string, index int) (string, error) {
	if limit := n.trail.maxPages; limit > 0 && n.trail.pages >= limit {
		return "", n.trail.broken("the reply does not say whether more pages follow, and MaxPages allows no more than %d", limit)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", err
	}
	page := cmp.Or(index, NumberIn(query, "page"), 1)
	values.Set("page", strconv.Itoa(page+1))
	return values.Encode(), nil
}

// endWith tells whether the error of the next page means that there is none.
func (n *pageNumbers) endWith(err error) bool {
	t := n.trail
	return !t.announced && t.pages > 0 && n.last < n.count && t.delivered >= t.total &&
		n.refused(err)
}
