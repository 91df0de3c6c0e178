package testserver

import (
	"cmp"
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

// pageResponse returns the page of all that the query parameters page and count select, in a form of Dialect.TaskPage.
// show converts each item.
func pageResponse[T, U any](c *call, form string, all []T, defaultCount int, show func(T) U) (response, error) {
	index, pageErr := c.positive("page", 1)
	count, countErr := c.positive("count", defaultCount)
	if err := cmp.Or(pageErr, countErr); err != nil {
		return response{}, err
	}
	p := page[U]{
		URI: c.pageAddress(index, count), Items: []U{}, Total: len(all),
		PageCount: (len(all) + count - 1) / count, PageIndex: index,
	}
	if index <= p.PageCount {
		start := (index - 1) * count
		for _, item := range all[start:min(start+count, len(all))] {
			p.Items = append(p.Items, show(item))
		}
	}
	if p.HasMore = index < p.PageCount; p.HasMore {
		p.NextURI = new(c.pageAddress(index+1, count))
	}
	if index > 1 {
		p.PrevURI = new(c.pageAddress(index-1, count))
	}
	switch form {
	case "array":
		return jsonResponse(http.StatusOK, p.Items), nil
	case "tasks":
		return jsonResponse(http.StatusOK, map[string]any{"tasks": p.Items}), nil
	default:
		return jsonResponse(http.StatusOK, p), nil
	}
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
