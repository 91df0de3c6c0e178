// Package objects recognizes what a JSON object of the service is. encoding/json decodes any object into any struct, so
// it cannot tell. Package objects reads whether further pages follow, in all spellings. It detects an object of another
// kind than requested. And it finds out whether the response to a change is a task.
//
// It knows members and their names (sections 2.1 and 2.6 of the service document). It must not know requests, the SDK's
// types and errors, or the content of an item.
//
// Entry points: [NewPage], [Problem] and [TaskIn].
package objects

import (
	"cmp"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Page is the envelope of a page in JSON. Create it with [NewPage] before decoding. Decode a bare array into Items.
// Items are pointers, so that null differs from an empty item.
type Page[T any] struct {
	URI       string  `json:"uri"`
	Items     []*T    `json:"items"`
	Tasks     []*T    `json:"tasks"` // another name for items (open point 2)
	Total     int64   `json:"total"`
	HasMore   *bool   `json:"has_more"`
	PageCount int     `json:"page_count"`
	PageIndex int     `json:"page_index"`
	PrevURI   *string `json:"prev_uri"`
	NextURI   *string `json:"next_uri"`

	next string // what NextURI points to
}

// noAddress marks a missing next_uri. No collection has this address.
const noAddress = "\x00"

// NewPage returns a page to decode into. Its values show which members are missing, because decoding leaves those
// fields alone. A next_uri of null, as on the last page, sets the pointer to nil.
func NewPage[T any]() *Page[T] {
	p := &Page[T]{Total: paging.Unknown, PageCount: paging.Unknown, next: noAddress}
	p.NextURI = &p.next
	return p
}

// Facts are the facts that a page gives. If a member is missing, its number is 0 or its address empty.
type Facts struct {
	Total                int64
	PageCount, PageIndex int
	PrevURI, NextURI     string
	HasMore              bool        // further pages exist, or may exist
	Page                 paging.Page // the same facts for package paging
}

// Facts returns the facts of the page. query is the query of its request.
func (p *Page[T]) Facts(query string) Facts {
	hasNext := p.NextURI == nil || *p.NextURI != noAddress // next_uri is not missing
	f := Facts{Total: max(p.Total, 0), PageCount: max(p.PageCount, 0), PageIndex: max(p.PageIndex, 0)}
	if p.PrevURI != nil {
		f.PrevURI = *p.PrevURI
	}
	if hasNext && p.NextURI != nil {
		f.NextURI = *p.NextURI
	}
	items := len(p.Items) + len(p.Tasks)
	f.Page = paging.Page{
		URI: p.URI, Next: f.NextURI, HasMore: p.HasMore, Index: f.PageIndex, Count: paging.Unknown, Total: paging.Unknown, Items: items,
	}
	if p.Total >= int64(items) {
		f.Page.Total = p.Total // a smaller number cannot be the total
	}
	if p.PageCount > 0 || p.PageCount == 0 && items == 0 {
		f.Page.Count = p.PageCount // 0 on a page with items cannot be the count
	}
	f.Page.Announces, f.HasMore = more(&f.Page, query, hasNext)
	return f
}

// more reports whether further pages exist, and whether the response says so. has_more has priority. A total has
// priority over a next_uri of null, because it is more exact.
func more(p *paging.Page, query string, hasNext bool) (announces, more bool) {
	number := 0           // of this page
	if p.HasMore == nil { // otherwise parsing the query would be wasted
		number = cmp.Or(p.Index, paging.NumberIn(query, "page"), 1)
	}
	switch {
	case p.HasMore != nil:
		return true, *p.HasMore
	case p.Next != "":
		return true, true
	case p.Count >= 0:
		return true, number < p.Count
	case hasNext && p.Total < 0:
		return true, false
	case number == 1 && p.Total >= 0:
		return false, p.Total > int64(p.Items)
	default:
		return false, p.Items > 0 && !hasNext
	}
}

// pageMembers are the members of a page. The first two hold its items.
var pageMembers = [...]string{"items", "tasks", "uri", "total", "has_more", "page_count", "page_index", "prev_uri", "next_uri"}

// Problem returns why an object is not a page or is ambiguous; "" if it is fine. For example, if a member comes twice,
// in any letter case, decoding keeps the last one, and the items of the first would be lost. Some services write null
// for an empty list of items: such an object is a page if it has another member of a page.
func (p *Page[T]) Problem(object []byte) string {
	var has [len(pageMembers)]bool
	holdsItems := false
	for name := range wire.Members(object) {
		holdsItems = holdsItems || name == pageMembers[0] || name == pageMembers[1]
		for i, known := range pageMembers {
			if !strings.EqualFold(name, known) {
				continue
			}
			if has[i] {
				return known + " comes twice"
			}
			has[i] = true
		}
	}
	saysMore := p.HasMore != nil || p.Total >= 0 || p.PageCount >= 0 || p.PageIndex > 0
	switch {
	case p.Items != nil && p.Tasks != nil:
		return "both items and tasks"
	case p.Items == nil && p.Tasks == nil && (!holdsItems || !saysMore):
		return "not a page: it has neither items nor tasks"
	default:
		return ""
	}
}
