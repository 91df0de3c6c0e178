// Package objects tells what a JSON object of the service is, which encoding/json does not: it reads any object into any
// struct. A page of a collection says in several spellings whether further pages follow. An object with an id may be of
// another kind than it was read into, and the object that answers a change may be a task, or not.
//
// It knows members and their names (sections 2.1 and 2.6 of the service document). It must not know requests, the SDK's
// types and errors, and what an item holds.
//
// Entry points: [NewPage], [Foreign] and [ReadAnswer].
package objects

import (
	"cmp"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Page is the envelope of a page as it is sent. Decode into one that [NewPage] returns; a bare array goes into Items.
// Pointers tell an item that is null from one that is empty.
type Page[T any] struct {
	URI       string  `json:"uri"`
	Items     []*T    `json:"items"`
	Tasks     []*T    `json:"tasks"` // also read, open point 2
	Total     int64   `json:"total"`
	HasMore   *bool   `json:"has_more"`
	PageCount int     `json:"page_count"`
	PageIndex int     `json:"page_index"`
	PrevURI   *string `json:"prev_uri"`
	NextURI   *string `json:"next_uri"`

	next string // what NextURI points to
}

// unsaidAddress is an address that no collection has.
const unsaidAddress = "\x00"

// NewPage fills in what decoding leaves alone where a member is missing. A next_uri of null, as on the last page, makes
// the pointer nil.
func NewPage[T any]() *Page[T] {
	p := &Page[T]{Total: paging.Unsaid, PageCount: paging.Unsaid, next: unsaidAddress}
	p.NextURI = &p.next
	return p
}

// Facts are what a page says. Of what it does not say, numbers are 0 and addresses empty.
type Facts struct {
	Total                int64
	PageCount, PageIndex int
	PrevURI, NextURI     string
	HasMore              bool        // further pages exist, or may exist
	Said                 paging.Page // for what follows the pages
}

// Facts returns what the page says. query is that of its request.
func (p *Page[T]) Facts(query string) Facts {
	saidNext := p.NextURI == nil || *p.NextURI != unsaidAddress
	f := Facts{Total: max(p.Total, 0), PageCount: max(p.PageCount, 0), PageIndex: max(p.PageIndex, 0)} // below 0: unsaid
	if p.PrevURI != nil {
		f.PrevURI = *p.PrevURI
	}
	if saidNext && p.NextURI != nil {
		f.NextURI = *p.NextURI
	}
	items := len(p.Items) + len(p.Tasks)
	f.Said = paging.Page{
		URI: p.URI, Next: f.NextURI, HasMore: p.HasMore, Index: f.PageIndex, Count: paging.Unsaid, Total: paging.Unsaid, Items: items,
	}
	if p.Total >= int64(items) {
		f.Said.Total = p.Total // a smaller one is no total
	}
	if p.PageCount > 0 || p.PageCount == 0 && items == 0 {
		f.Said.Count = p.PageCount // 0 on a page with items is no count
	}
	f.Said.Said, f.HasMore = more(&f.Said, query, saidNext)
	return f
}

// more tells whether further pages exist, and whether the response says so. has_more counts most. A next_uri of null says
// nothing beside a total, which is more exact.
func more(p *paging.Page, query string, saidNext bool) (said, more bool) {
	asked := 0
	if p.HasMore == nil { // the query is not read for nothing
		asked = cmp.Or(p.Index, paging.NumberIn(query, "page"), 1)
	}
	switch {
	case p.HasMore != nil:
		return true, *p.HasMore
	case p.Next != "":
		return true, true
	case p.Count >= 0:
		return true, asked < p.Count
	case saidNext && p.Total < 0:
		return true, false
	case asked == 1 && p.Total >= 0:
		return false, p.Total > int64(p.Items)
	default:
		return false, p.Items > 0 && !saidNext
	}
}

// pageMembers are the members of a page. The first two hold its items.
var pageMembers = [...]string{"items", "tasks", "uri", "total", "has_more", "page_count", "page_index", "prev_uri", "next_uri"}

// Problem tells why an object is a page that can be read in more than one way, or none; "" if it is fine. A member that
// comes twice, in whatever letter case, is an example: decoding takes the last of them, and the items of the first would
// be lost. Some services write null for no items: that is a page if it says something else of itself.
func (p *Page[T]) Problem(object []byte) string {
	var has [len(pageMembers)]bool
	holdsItems := false
	for text := range wire.Members(object) {
		name := string(text)
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
		return "no page: neither items nor tasks"
	default:
		return ""
	}
}
