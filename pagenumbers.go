package webdelivery

import (
	"cmp"
	"encoding/json"
	"errors"
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
	trail     *trail
	asked     int // number of the first page
	count     int // items a page that were asked for; 0: none
	pages     int
	size      int   // items of the first page
	last      int   // of the last one
	delivered int64 // of all
	total     int64 // that the last reply gave, -1 without one or when the first page was not page 1
	begins    map[string]bool
	seen      map[string]bool
}

func newPageNumbers(t *trail, query string) *pageNumbers {
	return &pageNumbers{trail: t, asked: cmp.Or(numberIn(query, "page"), 1), count: numberIn(query, "count"), total: -1}
}

// arrive judges a page by its items. Without fresh ones the reading is over.
func (n *pageNumbers) arrive(keys []string, total int64) (fresh, more bool, err error) {
	if n.asked == 1 && total >= 0 {
		n.total = total
	}
	n.pages++
	if n.pages == 1 {
		n.size, n.begins, n.seen = len(keys), map[string]bool{}, map[string]bool{}
	}
	lacking := n.delivered < n.total
	switch known := n.known(keys); {
	case len(keys) == 0 && !lacking:
		return false, false, nil
	case known && lacking:
		return false, false, n.trail.broken("%d of %d items came, and this page has no other", n.delivered, n.total)
	case known && n.pages == 2 && len(keys) == n.size && n.size != n.count:
		return false, false, nil
	case known && len(keys) < n.size && !n.begins[keys[0]]:
		return false, false, nil // the last page, moved on by a new item before it
	case known || n.begins[keys[0]]:
		return false, false, n.trail.broken("it repeats an earlier page")
	}
	n.begins[keys[0]] = true
	for _, key := range keys {
		n.seen[key] = true
	}
	n.last = len(keys)
	n.delivered += int64(n.last)
	if n.total >= 0 {
		return true, n.delivered < n.total, nil
	}
	return true, n.last >= n.size, nil
}

// known: no item is new.
func (n *pageNumbers) known(keys []string) bool {
	for _, key := range keys {
		if !n.seen[key] {
			return false
		}
	}
	return true
}

// next gives the query of the next page. index is the page_index of the last one, 0 without.
func (n *pageNumbers) next(query string, index int) (string, error) {
	if limit := n.trail.maxPages; limit > 0 && n.pages >= limit {
		return "", n.trail.broken("the reply does not say whether more pages follow, and MaxPages allows no more than %d", limit)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", err
	}
	page := cmp.Or(index, numberIn(query, "page"), 1)
	values.Set("page", strconv.Itoa(page+1))
	return values.Encode(), nil
}

// endWith tells whether the error of the next page means that there is none.
func (n *pageNumbers) endWith(err error) bool {
	return !n.trail.announced && n.pages > 0 && n.last < n.count && n.delivered >= n.total &&
		(errors.Is(err, ErrNotFound) || errors.Is(err, ErrBadRequest))
}

// keysOf are what items are known by: the id, or all of an item without one. What else a task says changes while it runs.
func keysOf[T any](items []T) []string {
	keys := make([]string, len(items))
	for i := range items {
		switch item := any(&items[i]).(type) {
		case *Task:
			keys[i] = item.ID
		case *NetworkList:
			keys[i] = item.ID
		case *NetworkListEntry:
			keys[i] = item.ID
		}
		if keys[i] == "" {
			text, _ := json.Marshal(items[i]) //nolint:errchkjson // it was read from JSON
			keys[i] = " " + string(text)
		}
	}
	return keys
}
