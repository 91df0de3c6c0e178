// Package statsquery has the rules of statistics queries (service document, sections 4.2, 4.3, 7 and 8). It knows which
// parameters a family has, how they are encoded, how many rows to request, and when a response is complete.
//
// It must not know requests, responses, how a filter is written, or public types.
//
// Entry points: [Query], the families such as [Events] and [WAFTopK], [Family.Encode], [Family.Complete],
// [Family.WithHeadroom], [Family.Warnings], [Query.ID], [Finest] and [EventsKept].
package statsquery

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Query holds the parameters of all families.
type Query struct {
	Dimensions  []string
	Metrics     []string
	Start, End  time.Time // sent in whole seconds of UTC
	Granularity string
	Filter      Filter // nil: no filter
	SortBy      []Sort
	Limit       int64 // 0: the default of the service
}

// Sort is one key of an order.
type Sort struct {
	Name       string
	Descending bool
}

// Filter is a filter expression.
type Filter interface {
	Validate() error
	String() string // as it is sent
}

// Clone returns a query that shares no slice with q.
func (q Query) Clone() Query {
	q.Dimensions, q.Metrics, q.SortBy = slices.Clone(q.Dimensions), slices.Clone(q.Metrics), slices.Clone(q.SortBy)
	return q
}

// ID identifies a valid query of a service. It does not depend on the end. The query must come from [Family.Encode].
func (q Query) ID(service string) string {
	q.End = q.Start
	sum := sha256.Sum256([]byte(service + "?" + q.encode("starttime")))
	return hex.EncodeToString(sum[:16])
}

// timeLayout is the pattern of section 4.2. The service rejects a zone designator.
const timeLayout = "2006-01-02T15:04:05"

// encode returns the query string. startTime is the name of the parameter for the start.
func (q Query) encode(startTime string) string {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("dimensions", strings.Join(q.Dimensions, ","))
	set("metrics", strings.Join(q.Metrics, ","))
	set("granularity", q.Granularity)
	keys := make([]string, len(q.SortBy))
	for i, s := range q.SortBy {
		keys[i] = s.Name
		if s.Descending {
			keys[i] = "-" + s.Name
		}
	}
	set("sortby", strings.Join(keys, ","))
	if q.Limit != 0 {
		set("limit", strconv.FormatInt(q.Limit, 10))
	}
	set(startTime, q.Start.Format(timeLayout))
	set("endtime", q.End.Format(timeLayout))
	if q.Filter != nil {
		values.Set("filters", q.Filter.String())
	}
	return values.Encode()
}
