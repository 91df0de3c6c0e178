package suite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// scanWriter writes responses that a scan into some fields can read, and sometimes one that does not fit.
type scanWriter struct {
	*rand.Rand
	bytes.Buffer
	blanks int // one token in so many has blanks before it; 0: none
}

// scanColumn is a column of a response.
type scanColumn struct {
	name  string
	types []reflect.Type // of the fields that take it; none for a column that no field takes
	pools [2][]scanCell  // its values, up to a row and from there on
	turn  int            // the first row with the second pool
	order int            // how values are chosen from a pool

	nulls   int // one value in so many is null; 0: none
	quotes  int // one number in so many is in quotes; 0: none
	escapes int // one character in so many is escaped that need not be; 0: none
}

// scanCell is a value of a column, before it is spelled.
type scanCell struct {
	text string
	bare bool // written as it is: a number, true, false, or a text that is not UTF-8 with its quotes
}

// plain returns the value as encoding/json reads it.
func (c scanCell) plain() any {
	switch {
	case !c.bare:
		return c.text
	case c.text == "true" || c.text == "false":
		return c.text == "true"
	default:
		return json.Number(c.text)
	}
}

// generateScan returns a response for some fields; a short one has one to three rows, and values that hardly fit.
func generateScan(rng *rand.Rand, fields []scanField, short bool) []byte {
	w := &scanWriter{Rand: rng}
	w.blanks = []int{0, 0, 50, 5}[w.IntN(4)]
	columns := w.columns(fields)
	rows := w.fill(columns, short)
	var misfits map[[2]int]string
	if short || w.oneIn(4) {
		misfits = w.misfits(columns, rows)
	}
	if len(columns) > 1 && w.oneIn(30) {
		columns = columns[1:] // one is missing, which is perhaps taken
		misfits = nil
	}
	members := []func(){
		func() {
			w.put(`"columns"`, ":")
			w.list(len(columns), func(i int) { w.put("{", w.pick(`"name"`, `"n\u0061me"`), ":", w.quoted(columns[i].name, 6), "}") })
		},
		func() {
			w.put(`"rows"`, ":")
			w.list(rows, func(row int) {
				w.list(len(columns), func(i int) {
					if misfit, ok := misfits[[2]int{row, i}]; ok {
						w.put(misfit)
						return
					}
					w.put(w.value(&columns[i], row))
				})
			})
		},
		func() { w.put(`"total_results"`, ":", fmt.Sprint(rows)) },
		func() { w.put(`"query"`, ":", w.pick(`{}`, `{"limit":10,"filters":"a==b"}`, `null`)) },
	}
	if w.oneIn(3) {
		w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	w.put("{")
	for i, member := range members {
		if i > 0 {
			w.put(",")
		}
		member()
	}
	w.put("}", "")
	return w.Bytes()
}

// columns returns the columns of the fields and others, in any order.
func (w *scanWriter) columns(fields []scanField) []scanColumn {
	var columns []scanColumn
	for _, field := range fields {
		if field.column == "" {
			continue
		}
		at := slices.IndexFunc(columns, func(c scanColumn) bool { return c.name == field.column })
		if at < 0 {
			at = len(columns)
			columns = append(columns, scanColumn{name: field.column})
		}
		columns[at].types = append(columns[at].types, field.typ)
	}
	for _, name := range []string{"unasked", "Zürich", "A", "name", "text2", "", "x\"y\\", "name of the inner", "-"} {
		if !slices.ContainsFunc(columns, func(c scanColumn) bool { return c.name == name }) && w.oneIn(6) {
			columns = append(columns, scanColumn{name: name})
		}
	}
	if w.oneIn(2) {
		w.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	}
	return columns
}

// fill chooses the values of the columns, and returns the number of rows. Some responses fit into one buffer of the
// reader, others need several.
func (w *scanWriter) fill(columns []scanColumn, short bool) int {
	var rows, size int
	switch n := w.IntN(60); {
	case short:
		rows, size = 1+w.IntN(3), 200<<10
	case n < 5:
		rows, size = n, 200<<10
	case n < 30:
		rows, size = 3+w.IntN(60), 40<<10
	case n < 59 || len(columns) > 10:
		rows, size = 60+w.IntN(400), 80<<10
	default:
		rows, size = 9000, 400<<10 // more distinct values than a cache may hold
	}
	rowSize := 1
	for i := range columns {
		w.fillColumn(&columns[i], rows)
		for _, pool := range columns[i].pools {
			for _, cell := range pool {
				rowSize += len(cell.text) / len(pool)
			}
		}
	}
	rows = min(rows, 2+size/rowSize)
	for i := range columns {
		if columns[i].turn = rows; columns[i].pools[1] != nil {
			columns[i].turn = rows / 2
		}
	}
	return rows
}

func (w *scanWriter) fillColumn(c *scanColumn, rows int) {
	nullable := true
	quotable := true
	for _, t := range c.types {
		nullable = nullable && (t.Kind() == reflect.Pointer || t == valueType)
		quotable = quotable && elemOf(t) != numberType
	}
	if nullable {
		c.nulls = []int{0, 2, 20}[w.IntN(3)]
	}
	if quotable {
		c.quotes = []int{0, 2, 10}[w.IntN(3)]
	}
	c.order = w.IntN(4)
	c.escapes = []int{0, 0, 0, 50, 3}[w.IntN(5)]
	distinct := max(1, min(rows, []int{1, 2, 5, 40, 300, 5000, rows}[w.IntN(7)]))
	c.pools[0] = w.pool(c.types, distinct)
	if w.oneIn(4) {
		c.pools[1] = w.pool(c.types, distinct)
	}
}

// value spells the next value of a column.
func (w *scanWriter) value(c *scanColumn, row int) string {
	if c.nulls > 0 && w.oneIn(c.nulls) {
		return "null"
	}
	pool := c.pools[0]
	if row >= c.turn {
		pool = c.pools[1]
	}
	var at int
	switch c.order {
	case 0:
		at = row
	case 1:
		at = row / 5 // runs
	case 2:
		at = w.IntN(min(len(pool), 1+row)) // early ones more often
	default:
		at = w.IntN(len(pool))
	}
	return w.spelled(pool[at%len(pool)], c)
}

func (w *scanWriter) spelled(cell scanCell, c *scanColumn) string {
	if cell.bare && (c.quotes == 0 || cell.text[0] == '"' || !w.oneIn(c.quotes)) {
		return cell.text
	}
	return w.quoted(cell.text, c.escapes)
}

// misfits returns values that do not fit, or hardly, by row and column.
func (w *scanWriter) misfits(columns []scanColumn, rows int) map[[2]int]string {
	misfits := map[[2]int]string{}
	for range min(rows, 1+w.IntN(3)) {
		row, at := w.IntN(rows), w.IntN(len(columns))
		if w.oneIn(2) {
			row = rows - 1
		}
		c := &columns[at]
		other := &columns[w.IntN(len(columns))]
		switch cell := other.pools[0][0]; {
		case w.oneIn(8):
			misfits[[2]int{row, at}] = "null"
		case w.oneIn(8) && cell.text != "": // whether an empty text is a port is documented nowhere
			misfits[[2]int{row, at}] = w.spelled(cell, other)
		default:
			misfits[[2]int{row, at}] = w.nearMiss(c)
		}
	}
	return misfits
}

// oneIn returns true once in n times, on average.
func (w *scanWriter) oneIn(n int) bool { return w.IntN(n) == 0 }

func (w *scanWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

// put writes tokens, some with blanks before them.
func (w *scanWriter) put(tokens ...string) {
	for _, token := range tokens {
		if w.blanks > 0 && w.oneIn(w.blanks) {
			w.WriteString(w.pick(" ", "\n", "\t", "\r\n", " \n\t  "))
		}
		w.WriteString(token)
	}
}

func (w *scanWriter) list(n int, write func(i int)) {
	w.put("[")
	for i := range n {
		if i > 0 {
			w.put(",")
		}
		write(i)
	}
	w.put("]")
}

// quoted writes a text in quotes; one character in so many as an escape that need not be one.
func (w *scanWriter) quoted(text string, escapes int) string {
	if escapes == 0 && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) < 0 {
		return `"` + text + `"`
	}
	out := make([]byte, 0, len(text)+len(text)/4+2)
	out = append(out, '"')
	for _, r := range text {
		escaped := escapes > 0 && w.oneIn(escapes)
		short := -1
		if r <= '\\' {
			short = strings.IndexRune("\"\\/\b\f\n\r\t", r)
		}
		switch {
		case short >= 0 && (r != '/' || escaped) && (!escaped || w.oneIn(2)):
			out = append(out, '\\', `"\/bfnrt`[short])
		case r > 0xffff && escaped:
			r -= 0x10000
			out = w.escape(w.escape(out, 0xd800+r>>10), 0xdc00+r&0x3ff)
		case r < ' ' || r == '"' || r == '\\' || escaped:
			out = w.escape(out, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(append(out, '"'))
}

// escape writes a code unit with small or capital digits.
func (w *scanWriter) escape(out []byte, unit rune) []byte {
	digits := w.pick("0123456789abcdef", "0123456789ABCDEF")
	return append(out, '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}

// elemOf returns the type behind all pointers.
func elemOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
