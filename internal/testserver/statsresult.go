package testserver

import (
	"bufio"
	"context"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
)

// memberOrders are the orders of the members of a result (open point 30), by Dialect.MemberOrder.
var memberOrders = map[string][]string{
	"documented":  {"query", "columns", "rows", "total_results"},
	"rows-first":  {"rows", "columns", "total_results", "query"},
	"total-first": {"total_results", "query", "columns", "rows"},
}

// write writes the result (service document, section 2.4) while it finds the rows: the result may not fit into memory.
func (q *statsQuery) write(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 32<<10) // keeps the first error for Flush
	total := -1
	separator := "{"
	for _, member := range memberOrders[q.dialect.MemberOrder] {
		_, _ = out.WriteString(separator + `"` + member + `":`)
		separator = ","
		switch member {
		case "query":
			_, _ = out.Write(appendJSON(out.AvailableBuffer(), q.echo))
		case "columns":
			_, _ = out.Write(appendJSON(out.AvailableBuffer(), q.columnNames()))
		case "rows":
			total = q.writeRows(ctx, out)
		case "total_results":
			if total < 0 {
				total = 0
				for range q.rows(ctx) {
					total++
				}
			}
			_, _ = out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(total), 10))
			if q.dialect.Total == "float" {
				_, _ = out.WriteString(".0")
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	_, _ = out.WriteString("}\n")
	return out.Flush()
}

type nameJSON struct {
	Name string `json:"name"`
}

func (q *statsQuery) columnNames() []nameJSON {
	names := make([]nameJSON, len(q.columns))
	for i, c := range q.columns {
		names[i].Name = c.name
	}
	return names
}

func (q *statsQuery) writeRows(ctx context.Context, out *bufio.Writer) (total int) {
	separator := byte('[')
	for r := range q.rows(ctx) {
		if total++; total <= q.echo.Limit {
			_, _ = out.Write(r.appendJSON(append(out.AvailableBuffer(), separator)))
			separator = ','
		}
	}
	switch {
	case separator == ',':
		_ = out.WriteByte(']')
	case q.dialect.NoRows == "null":
		_, _ = out.WriteString("null")
	default:
		_, _ = out.WriteString("[]")
	}
	return total
}

// row has a value for each column; in aggregated data, hits is the last.
type row []value

func (r row) appendJSON(b []byte) []byte {
	b = append(b, '[')
	for i, v := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.appendJSON(b)
	}
	return append(b, ']')
}

// rows returns all rows in the requested order, whatever the limit. A row is valid until the next one. Raw events in the
// order of time, which is the default, are not stored.
func (q *statsQuery) rows(ctx context.Context) iter.Seq[row] {
	if q.family.raw() && q.inOrderOfTime() {
		return q.matching(ctx, q.echo.Limit)
	}
	var all []row
	if q.family.raw() {
		for r := range q.matching(ctx, math.MaxInt) {
			all = append(all, slices.Clone(r))
		}
	} else {
		all = q.groups(ctx)
	}
	slices.SortStableFunc(all, func(a, b row) int {
		for _, key := range q.order {
			c := a[key.column].compare(b[key.column])
			if key.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return slices.Values(all)
}

func (q *statsQuery) inOrderOfTime() bool {
	return len(q.order) == 0 ||
		len(q.order) == 1 && q.columns[q.order[0].column].name == timeDimension && !q.order[0].descending
}

// groups counts the events of each group, and returns the groups in the order of their values. Of a top-K it returns the
// largest.
func (q *statsQuery) groups(ctx context.Context) (all []row) {
	hit := len(q.columns) - 1
	seen := map[string]int{} // index into all by the row with no hits
	var key []byte
	for r := range q.matching(ctx, math.MaxInt) {
		key = r.appendJSON(key[:0])
		at, ok := seen[string(key)]
		if !ok {
			at = len(all)
			seen[string(key)] = at
			all = append(all, slices.Clone(r))
		}
		all[at][hit].number++
	}
	slices.SortFunc(all, func(a, b row) int { return slices.CompareFunc(a, b, value.compare) })
	if top := q.family.top; top > 0 {
		slices.SortStableFunc(all, func(a, b row) int { return b[hit].compare(a[hit]) })
		all = all[:min(top, len(all))]
	}
	return all
}

// matching returns the row of each event that the query matches, in order of time, until the context ends. A row is valid
// until the next one. Rows beyond the limit are empty, because they are only counted.
func (q *statsQuery) matching(ctx context.Context, limit int) iter.Seq[row] {
	return func(yield func(row) bool) {
		looked, found := 0, 0
		var r row
		for e := range q.history.between(q.start, q.end) {
			if looked++; looked%1024 == 0 && ctx.Err() != nil {
				return
			}
			if !q.family.belongs(e) || !q.filter.matches(e) {
				continue
			}
			r = r[:0]
			if found++; found <= limit {
				for _, c := range q.columns {
					r = append(r, c.of(e))
				}
			}
			if !yield(r) {
				return
			}
		}
	}
}
