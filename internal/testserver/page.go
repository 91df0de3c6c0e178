package testserver

import (
	"net/http"
	"strconv"
)

// page is the envelope of a paged collection (service document, section 2.6).
type page[T any] struct {
	URI       string  `json:"uri"`
	Items     []T     `json:"items"`
	Total     int     `json:"total"`
	HasMore   bool    `json:"has_more"`
	PageCount int     `json:"page_count"`
	PageIndex int     `json:"page_index"`
	PrevURI   *string `json:"prev_uri"` // null on the first page
	NextURI   *string `json:"next_uri"` // null on the last page
}

// paginate returns the page of all that the query parameters page and count select.
func paginate[T any](c *call, all []T, defaultCount int) (page[T], error) {
	index, err := c.positive("page", 1)
	if err != nil {
		return page[T]{}, err
	}
	count, err := c.positive("count", defaultCount)
	if err != nil {
		return page[T]{}, err
	}
	p := page[T]{
		URI: c.pageAddress(index, count), Items: []T{}, Total: len(all),
		PageCount: (len(all) + count - 1) / count, PageIndex: index,
	}
	if index <= p.PageCount {
		start := (index - 1) * count
		p.Items = all[start:min(start+count, len(all))]
	}
	if p.HasMore = index < p.PageCount; p.HasMore {
		next := c.pageAddress(index+1, count)
		p.NextURI = &next
	}
	if index > 1 {
		prev := c.pageAddress(index-1, count)
		p.PrevURI = &prev
	}
	return p, nil
}

// pageResponse returns the page that the query parameters select; show converts each item.
func pageResponse[T, U any](c *call, all []T, defaultCount int, show func(T) U) (response, error) {
	cut, err := paginate(c, all, defaultCount)
	if err != nil {
		return response{}, err
	}
	shown := page[U]{
		URI: cut.URI, Items: make([]U, len(cut.Items)), Total: cut.Total, HasMore: cut.HasMore,
		PageCount: cut.PageCount, PageIndex: cut.PageIndex, PrevURI: cut.PrevURI, NextURI: cut.NextURI,
	}
	for i, item := range cut.Items {
		shown.Items[i] = show(item)
	}
	return jsonResponse(http.StatusOK, shown), nil
}

// positive reads a query parameter that is a positive integer.
func (c *call) positive(name string, fallback int) (int, error) {
	if !c.query.Has(name) {
		return fallback, nil
	}
	value, err := strconv.ParseUint(c.query.Get(name), 10, 31)
	if err != nil || value == 0 {
		return 0, refuse(http.StatusBadRequest, "%s must be a positive integer", name)
	}
	return int(value), nil
}
