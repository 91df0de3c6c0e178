package testserver

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"iter"
	"slices"
)

// memberOrders are the orders of the members of a result (open point 30), by Dialect.MemberOrder.
var memberOrders = map[string][]string{
	"documented":  {"query", "columns", "rows", "total_results"},
	"rows-first":  {"rows", "columns", "total_results", "query"},
	"total-first": {"total_results", "query", "columns", "rows"},
}

// write writes the result (service document, section 2.4) while it finds the rows: the result may not fit into memory.
func (q *statsQuery) write(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 32<<10)
	total := -1
	separator := "{"
	for _, member := range memberOrders[q.dialect.MemberOrder] {
		_, _ = out.WriteString(separator + `"` + member + `":`)
		separator = ","
		var err error
		switch member {
		case "query":
			_, err = out.Write(appendJSON(out.AvailableBuffer(), q.echo))
		case "columns":
			_, err = out.Write(appendJSON(out.AvailableBuffer(), q.columnNames()))
		case "rows":
			total, err = q.writeRows(ctx, out)
		case "total_results":
			if total < 0 {
				total, err = q.results(ctx, func([]byte) error { return nil })
			}
			_, _ = out.Write(appendJSON(out.AvailableBuffer(), total))
			if q.dialect.Total == "float" {
				_, _ = out.WriteString(".0")
			}
		}
		if err != nil {
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

func (q *statsQuery) writeRows(ctx context.Context, out *bufio.Writer) (total int, err error) {
	separator := byte('[')
	total, err = q.results(ctx, func(row []byte) error {
		_ = out.WriteByte(separator)
		separator = ','
		_, err := out.Write(row)
		return err
	})
	if separator == '[' && q.dialect.NoRows == "null" {
		_, _ = out.WriteString("null")
		return total, err
	}
	if separator == '[' {
		_ = out.WriteByte('[')
	}
	return total, cmp.Or(err, out.WriteByte(']'))
}

// results passes the rows up to the limit to row, and returns the number of rows without the limit. A row is valid
// until the next one.
func (q *statsQuery) results(ctx context.Context, row func([]byte) error) (total int, err error) {
	if q.family.raw() {
		total, err = q.rawRows(ctx, row)
	} else {
		total, err = q.groupRows(ctx, row)
	}
	return total, cmp.Or(err, ctx.Err())
}

// matching returns the events that the query matches, until the context ends. An event is valid until the next one.
func (q *statsQuery) matching(ctx context.Context) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		looked := 0
		for e := range q.history.between(q.start, q.end) {
			if looked++; looked%1024 == 0 && ctx.Err() != nil {
				return
			}
			if q.family.belongs(e) && q.filter.matches(e) && !yield(e) {
				return
			}
		}
	}
}

// rawRows passes on each event at once if the query asks for the order of time, which is the default. Otherwise it
// sorts them first.
func (q *statsQuery) rawRows(ctx context.Context, row func([]byte) error) (total int, err error) {
	var buf []byte
	show := func(e *record) error {
		buf = appendRow(buf[:0], len(q.columns), func(i int) value { return q.columns[i].of(e) })
		return row(buf)
	}
	var all []*record
	for e := range q.matching(ctx) {
		total++
		switch {
		case !q.inOrderOfTime():
			all = append(all, new(*e))
		case total <= q.limit:
			err = show(e)
		}
		if err != nil {
			return total, err
		}
	}
	slices.SortStableFunc(all, byKeys(q.order, func(e *record, i int) value { return q.columns[i].of(e) }))
	for _, e := range all[:min(q.limit, len(all))] {
		if err := show(e); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (q *statsQuery) inOrderOfTime() bool {
	return len(q.order) == 0 ||
		len(q.order) == 1 && q.columns[q.order[0].column].name == timeDimension && !q.order[0].descending
}

// byKeys orders by the columns of the keys; at returns the value of a column.
func byKeys[T any](keys []sortKey, at func(T, int) value) func(a, b T) int {
	return func(a, b T) int {
		for _, key := range keys {
			c := at(a, key.column).compare(at(b, key.column))
			if key.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	}
}

// group is one row of aggregated data: a value for each column, hits last.
type group []value

// groupRows counts the events of each group, and passes on the groups in the requested order. It cuts a top-K before it
// sorts.
func (q *statsQuery) groupRows(ctx context.Context, row func([]byte) error) (total int, err error) {
	groups := q.countGroups(ctx)
	slices.SortFunc(groups, func(a, b group) int { return slices.CompareFunc(a, b, value.compare) })
	total = len(groups)
	if top := q.family.top; top > 0 {
		count := len(q.columns) - 1
		slices.SortStableFunc(groups, func(a, b group) int { return b[count].compare(a[count]) })
		groups = groups[:min(top, total)]
		total = len(groups)
	}
	slices.SortStableFunc(groups, byKeys(q.order, func(g group, i int) value { return g[i] }))
	var buf []byte
	for _, g := range groups[:min(q.limit, len(groups))] {
		buf = appendRow(buf[:0], len(g), func(i int) value { return g[i] })
		if err := row(buf); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (q *statsQuery) countGroups(ctx context.Context) []group {
	hit := len(q.columns) - 1
	var groups []group
	seen := map[string]int{} // index into groups by the values in JSON
	var key []byte
	for e := range q.matching(ctx) {
		key = key[:0]
		for _, c := range q.columns[:hit] {
			key = append(c.of(e).appendJSON(key), ',')
		}
		at, ok := seen[string(key)]
		if !ok {
			at = len(groups)
			seen[string(key)] = at
			groups = append(groups, q.newGroup(e))
		}
		groups[at][hit].number++
	}
	return groups
}

func (q *statsQuery) newGroup(e *record) group {
	g := make(group, len(q.columns))
	for i, c := range q.columns {
		if g[i] = (value{kind: number}); c.of != nil {
			g[i] = c.of(e)
		}
	}
	return g
}

// appendRow appends a row of that many columns; at returns the value of a column.
func appendRow(b []byte, columns int, at func(int) value) []byte {
	b = append(b, '[')
	for i := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = at(i).appendJSON(b)
	}
	return append(b, ']')
}
