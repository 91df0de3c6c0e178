package webdelivery_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// FuzzResults compares Query, Rows and Scan with the reader of rfc8259_test.go. A grammar writes the results (seed),
// and then they are damaged: bytes are flipped, cut off, removed, doubled, inserted. A body that is no JSON or no
// result returns an error. Otherwise each value is the same, in every type of field. Texts of rows may be invalid:
// U+FFFD replaces what is no text.
func FuzzResults(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for seed := range uint64(60) {
		spoil := make([]byte, 4*rng.IntN(3))
		for i := range spoil {
			spoil[i] = byte(rng.Uint32())
		}
		f.Add(seed, spoil)
	}
	f.Fuzz(func(t *testing.T, seed uint64, spoil []byte) {
		w := resultWriter{Rand: rand.New(rand.NewPCG(seed, 0))}
		w.result()
		body := spoilt(w.Bytes(), spoil)
		compareResult(t, body)
	})
}

// scannedKinds has a field of every kind.
type scannedKinds struct {
	Time   time.Time         `stats:"time"`
	Addr   netip.Addr        `stats:"addr"`
	Prefix netip.Prefix      `stats:"prefix"`
	Text   string            `stats:"text"`
	Yes    bool              `stats:"yes"`
	Int8   int8              `stats:"int8"`
	Int64  int64             `stats:"int64"`
	Uint64 uint64            `stats:"uint64"`
	Single float32           `stats:"single"`
	Double float64           `stats:"double"`
	Number json.Number       `stats:"number"`
	Any    webdelivery.Value `stats:"any"`
	Own    ownText           `stats:"own"`
	Maybe  *int64            `stats:"maybe"`
}

// ownText is a TextUnmarshaler.
type ownText string

func (o *ownText) UnmarshalText(text []byte) error {
	*o = ownText(text)
	return nil
}

// columnKinds are the columns in the order of the fields. Each turns a value into a text that identifies it, or
// returns false if the value does not fit.
var columnKinds = []struct {
	name string
	want func(*node) (string, bool)
}{
	{"time", func(n *node) (string, bool) {
		for _, layout := range []string{
			time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02",
		} {
			if at, err := time.Parse(layout, n.text); err == nil && n.kind == '"' {
				return at.UTC().Format(time.RFC3339Nano), true
			}
		}
		return "", false
	}},
	{"addr", func(n *node) (string, bool) {
		addr, err := netip.ParseAddr(n.text)
		return addr.String(), err == nil && n.kind == '"'
	}},
	{"prefix", func(n *node) (string, bool) {
		prefix, err := netip.ParsePrefix(n.plain())
		return prefix.String(), err == nil
	}},
	{"text", func(n *node) (string, bool) { return n.plain(), n.kind != 'n' }},
	{"yes", func(n *node) (string, bool) {
		yes := n.plain() == "true"
		return strconv.FormatBool(yes), yes || n.plain() == "false"
	}},
	{"int8", func(n *node) (string, bool) { return n.integer("-128", "127") }},
	{"int64", func(n *node) (string, bool) { return n.integer("-9223372036854775808", "9223372036854775807") }},
	{"uint64", func(n *node) (string, bool) { return n.integer("0", "18446744073709551615") }},
	{"single", func(n *node) (string, bool) { return n.float(32) }},
	{"double", func(n *node) (string, bool) { return n.float(64) }},
	{"number", func(n *node) (string, bool) { return n.raw, n.kind == '0' }},
	{"any", func(n *node) (string, bool) { return n.raw, true }},
	{"own", func(n *node) (string, bool) { return n.plain(), n.kind != 'n' }},
	{"maybe", func(n *node) (string, bool) {
		if n.kind == 'n' {
			return "nil", true
		}
		return n.integer("-9223372036854775808", "9223372036854775807")
	}},
}

// texts returns what columnKinds compare.
func (s scannedKinds) texts() []string {
	maybe := "nil"
	if s.Maybe != nil {
		maybe = fmt.Sprint(*s.Maybe)
	}
	return []string{
		s.Time.Format(time.RFC3339Nano), s.Addr.String(), s.Prefix.String(), s.Text, fmt.Sprint(s.Yes), fmt.Sprint(s.Int8), fmt.Sprint(s.Int64),
		fmt.Sprint(s.Uint64), strconv.FormatFloat(float64(s.Single), 'g', -1, 32), strconv.FormatFloat(s.Double, 'g', -1, 64), s.Number.String(),
		string(s.Any.Raw()), string(s.Own), maybe,
	}
}

// plain returns the text of a value that is not null.
func (n *node) plain() string {
	switch n.kind {
	case '"':
		return n.text
	case 'n':
		return ""
	default:
		return n.raw
	}
}

var (
	numberForm  = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\z`)
	integerForm = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)\z`)
)

// integer compares decimal numbers as texts.
func (n *node) integer(least, most string) (string, bool) {
	text := n.plain()
	if !integerForm.MatchString(text) || least == "0" && text[0] == '-' {
		return "", false
	}
	bound := most
	if text[0] == '-' {
		bound = least
	}
	if len(text) > len(bound) || len(text) == len(bound) && text > bound {
		return "", false
	}
	if text == "-0" {
		text = "0"
	}
	return text, true
}

func (n *node) float(bits int) (string, bool) {
	text := n.plain()
	f, err := strconv.ParseFloat(text, bits)
	return strconv.FormatFloat(f, 'g', -1, bits), err == nil && numberForm.MatchString(text)
}

// wantedResult is a result by section 2.4 of the service document.
type wantedResult struct {
	columns []string
	rows    [][]*node
	total   int64
	broken  int64 // texts in rows
}

// resultIn reads a result; false if the body is none.
func resultIn(body string) (w wantedResult, isResult, hasCode bool) {
	top := parseBroken(body)
	if top == nil || top.kind != '{' {
		return w, false, false
	}
	found := map[string]*node{}
	for i, name := range top.names {
		value := top.nodes[i]
		if value.brokenName || value.broken && name != "rows" {
			return w, false, hasCode // only texts of rows may be invalid
		}
		hasCode = hasCode || strings.EqualFold(name, "code")
		switch name {
		case "columns", "rows":
			if value.kind == 'n' && found["columns"] == nil && found["rows"] == nil {
				continue // like a missing member
			}
			fallthrough
		case "total_results", "query":
			if found[name] != nil {
				return w, false, hasCode // which of the two counts?
			}
			found[name] = value
		}
	}
	columns, rows, total := found["columns"], found["rows"], found["total_results"]
	if columns == nil || rows == nil || total == nil || columns.kind != '[' || rows.kind != '[' || total.kind != '0' {
		return w, false, hasCode
	}
	for _, column := range columns.nodes {
		var name *node
		for i := range column.names {
			if column.names[i] == "name" {
				if name = column.nodes[i]; name.kind != '"' && name.kind != 'n' {
					return w, false, hasCode
				}
			}
		}
		if name == nil || name.kind != '"' || slices.Contains(w.columns, name.text) {
			return w, false, hasCode
		}
		w.columns = append(w.columns, name.text)
	}
	for _, row := range rows.nodes {
		nested := slices.ContainsFunc(row.nodes, func(n *node) bool { return n.kind == '[' || n.kind == '{' })
		if row.kind != '[' || nested || len(row.nodes) != len(w.columns) {
			return w, false, hasCode
		}
		w.rows = append(w.rows, row.nodes)
		for _, n := range row.nodes {
			if n.broken {
				w.broken++
			}
		}
	}
	text, fits := total.integer("0", "9223372036854775807")
	if total.raw == "-0" {
		text, fits = "0", true
	}
	w.total, _ = strconv.ParseInt(text, 10, 64)
	return w, fits, hasCode
}

// compareResult reads a body in every way.
func compareResult(t *testing.T, body []byte) {
	t.Helper()
	want, isResult, hasCode := resultIn(string(body))
	if hasCode {
		return // the body may reject
	}
	query := aDay
	query.Limit = 1 << 30
	whole := always(t, body)
	slow := answered(t, func(*http.Request) *http.Response {
		r := response(http.StatusOK, nil)
		r.Body = io.NopCloser(iotest.OneByteReader(bytes.NewReader(body)))
		return r
	})
	check := func(err error) {
		t.Helper()
		var incomplete *webdelivery.IncompleteError
		switch {
		case !isResult:
			require.ErrorIs(t, err, webdelivery.ErrBadReply, "%q", body)
		case int64(len(want.rows)) < want.total:
			require.ErrorAs(t, err, &incomplete, "%q", body)
			assert.Equal(t, webdelivery.IncompleteError{Got: int64(len(want.rows)), Total: want.total}, *incomplete)
		default:
			require.NoError(t, err, "%q", body)
		}
	}

	result, err := whole.Stats.Events.Query(t.Context(), query)
	check(err)
	if isResult {
		assert.Equal(t, want.columns, result.Columns)
		assert.Equal(t, want.total, result.TotalResults)
		assert.Equal(t, want.broken, result.ReplacedTexts)
		require.Len(t, result.Rows, len(want.rows))
		for i, row := range result.Rows {
			compareRow(t, want.rows[i], row)
		}
	}
	if want.broken > 0 {
		_, err := always(t, body, webdelivery.WithStrictTexts()).Stats.Events.Query(t.Context(), query)
		require.ErrorIs(t, err, webdelivery.ErrBadReply)
	}
	for _, client := range []*webdelivery.Client{whole, slow} {
		n := 0
		for row, rowsErr := range client.Stats.Events.Rows(t.Context(), query) {
			if err = rowsErr; err != nil {
				break
			}
			if isResult {
				compareRow(t, want.rows[n], row)
			}
			n++
		}
		check(err)
		if isResult {
			assert.Equal(t, len(want.rows), n)
		}
	}
	if isResult {
		compareScan(t, want, whole, query)
	}
}

func compareRow(t *testing.T, want []*node, row webdelivery.Row) {
	t.Helper()
	require.Equal(t, len(want), row.Len())
	var raw []string
	for i, n := range want {
		v := row.At(i)
		assert.Equal(t, n.raw, string(v.Raw()))
		assert.Equal(t, n.plain(), v.String())
		assert.Equal(t, n.kind == 'n', v.IsNull())
		whole, err := v.Int64()
		text, fits := n.integer("-9223372036854775808", "9223372036854775807")
		assert.Equal(t, fits, err == nil, n.raw)
		if fits {
			assert.Equal(t, text, fmt.Sprint(whole))
		}
		f, err := v.Float64()
		text, fits = n.float(64)
		assert.Equal(t, fits, err == nil, n.raw)
		if fits {
			assert.Equal(t, text, strconv.FormatFloat(f, 'g', -1, 64))
		}
		json := n.raw
		if n.broken {
			json = n.mended
		}
		raw = append(raw, json)
	}
	assert.Equal(t, "["+strings.Join(raw, ",")+"]", row.String())
}

// compareScan reads structs: as many rows as fit, and then the error names the first value that does not.
func compareScan(t *testing.T, want wantedResult, client *webdelivery.Client, query webdelivery.EventsQuery) {
	t.Helper()
	n := 0
	for got, err := range webdelivery.Scan[scannedKinds](client.Stats.Events.Rows(t.Context(), query)) {
		var scanning *webdelivery.ScanError
		if err != nil && !errors.As(err, &scanning) {
			var incomplete *webdelivery.IncompleteError
			require.ErrorAs(t, err, &incomplete)
			break
		}
		var texts []string
		misfit := ""
		for _, kind := range columnKinds {
			column := slices.Index(want.columns, kind.name)
			if column < 0 {
				misfit = kind.name
				break
			}
			text, fits := kind.want(want.rows[n][column])
			if !fits {
				misfit = kind.name
				break
			}
			texts = append(texts, text)
		}
		if misfit != "" {
			require.Error(t, err, "row %d, column %s", n+1, misfit)
			// A missing column is an error before any value is read.
			for _, kind := range slices.Backward(columnKinds) {
				if !slices.Contains(want.columns, kind.name) {
					misfit = kind.name
				}
			}
			assert.Equal(t, misfit, scanning.Column)
			assert.Equal(t, int64(n+1), scanning.Row)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, texts, got.texts())
		n++
	}
	assert.Len(t, want.rows, n)
}

// spoilt changes a text by a recipe, which has four bytes per change: the kind, the place (two bytes), and a value.
func spoilt(text, recipe []byte) []byte {
	garbage := []string{
		".5", "e400", "0", "-", "null", `"x"`, "[", "]", "{", "}", ":", ",", `\`, `"`, "\x00", "\xff", "\u00a0", "\ufeff", " ", "\t", `\ud800`, `\u0000`, "//", "1",
		`"rows":[],`, `"columns":[],`, `"Rows":[],`, `"total_results":1,`, `"name":"x",`, `"Name":"x",`, "\u017f", "+",
	}
	text = slices.Clone(text)
	for ; len(recipe) >= 4 && len(text) > 0; recipe = recipe[4:] {
		at, with := int(binary.BigEndian.Uint16(recipe[1:]))%len(text), recipe[3]
		end := min(len(text), at+1+int(with%16))
		switch recipe[0] % 6 {
		case 0:
			text[at] ^= with
		case 1:
			text = text[:at]
		case 2:
			text = slices.Delete(text, at, end)
		case 3:
			text = slices.Insert(text, end, slices.Clone(text[at:end])...)
		case 4:
			text = slices.Insert(text, at, []byte(garbage[int(with)%len(garbage)])...)
		default:
			text[at] = with
		}
	}
	return text
}

// resultWriter writes valid results, in every spelling that JSON allows.
type resultWriter struct {
	*rand.Rand
	bytes.Buffer
}

// oneIn returns true once in n times, on average.
func (w *resultWriter) oneIn(n int) bool { return w.IntN(n) == 0 }

func (w *resultWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

// put writes tokens, some with blanks between them.
func (w *resultWriter) put(tokens ...string) {
	for _, token := range tokens {
		if w.oneIn(8) {
			w.WriteString(w.pick(" ", "\n", "\t", "\r\n", "  "))
		}
		w.WriteString(token)
	}
}

// list writes n values with commas between them.
func (w *resultWriter) list(open, end string, n int, write func(i int)) {
	w.put(open)
	for i := range n {
		if i > 0 {
			w.put(",")
		}
		write(i)
	}
	w.put(end)
}

func (w *resultWriter) result() {
	var columns []string
	for _, kind := range columnKinds {
		if !w.oneIn(60) {
			columns = append(columns, kind.name)
		}
	}
	w.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	if w.oneIn(6) {
		columns = append(columns, "more")
	}
	rows := w.IntN(4)
	total := rows
	if w.oneIn(8) {
		total += w.IntN(3)
	}
	members := []func(){
		func() {
			w.put(w.quoted("columns"), ":")
			w.list("[", "]", len(columns), func(i int) {
				if w.oneIn(10) {
					w.put("{", `"type":"x"`, ",", w.quoted("name"), ":", w.quoted(columns[i]), "}")
				} else {
					w.put("{", w.quoted("name"), ":", w.quoted(columns[i]), "}")
				}
			})
		},
		func() {
			w.put(w.quoted("rows"), ":")
			w.list("[", "]", rows, func(int) {
				w.list("[", "]", len(columns), func(i int) { w.put(w.cell(columns[i])) })
			})
		},
		func() { w.put(w.quoted("total_results"), ":", fmt.Sprint(total)) },
		func() { w.put(`"query"`, ":", w.pick(`{}`, `{"limit":10,"filters":"a==b"}`, `null`, `[1]`)) },
		func() {
			w.put(w.quoted(w.pick("Columns", "Rows", "ROWS", "Total_results", "new", "x")), ":", w.pick(`[]`, `{"a":[1,{}]}`, `"x"`, `0`))
		},
	}
	w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	w.list("{", "}", len(members), func(i int) { members[i]() })
	w.put("")
}

// cell writes a value that fits the column, or sometimes one of any kind.
func (w *resultWriter) cell(column string) string {
	if w.oneIn(25) {
		column = columnKinds[w.IntN(len(columnKinds))].name
	}
	if w.oneIn(60) {
		return "null"
	}
	whole := w.pick("0", "-0", "7", "-128", "127", "128", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615", "00", "1.0", "1e2")
	small := w.pick("0", "1", "42", "127", "100")
	decimal := w.pick("0.5", "-1.25", "1e3", "1E-7", "16777217", "0", "1e400", "1e39", "123456789.125", "-0", "-0.0")
	switch column {
	case "time":
		return w.quoted(w.pick("2026-11-20T08:30:00", "2026-11-20T08:30:00.123", "2026-11-20 08:30:00", "2026-11-20T08:30:00Z", "2024-02-29T23:59:59.999999999",
			"2026-11-20T08:30:00+0100", "2026-11-20", "0001-01-01T00:00:00", "9999-12-31T23:59:59", "1969-12-31T23:59:59.5"))
	case "addr":
		return w.quoted(w.pick("192.0.2.1", "2001:db8::1", "255.255.255.255", "::ffff:192.0.2.1", "0.0.0.0", "fe80::1%eth0"))
	case "prefix":
		return w.quoted(w.pick("192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0", "192.0.2.1/32"))
	case "yes":
		return w.pick("true", "false", `"true"`, `"0"`, "1")
	case "int8", "uint64":
		return w.maybeQuoted(small)
	case "int64", "maybe":
		if w.oneIn(3) && (whole != "00" && whole != "1.0" && whole != "1e2") {
			return w.maybeQuoted(whole)
		}
		return w.maybeQuoted(small)
	case "single", "double":
		return w.maybeQuoted(w.pick(decimal, small, "0.5", "2.5e-3"))
	case "number":
		return w.pick(decimal, small, "1.50")
	default:
		if w.oneIn(10) {
			return w.pick("\"a\xff\"", "\"\xe2\x98\"", `"\ud800\u0041"`, `"\udc00\ud83d\ude00"`, "\"\\n\xc0\ufffd\"")
		}
		return w.pick(w.quoted(w.pick("", "CN", "a,b]", `"`, `\`, "ü", "😀", "\u2028", "<&>", "\n", "\x7f", strings.Repeat("x", w.IntN(40)))), "1", "true", "-2.5e1")
	}
}

func (w *resultWriter) maybeQuoted(number string) string {
	if w.oneIn(4) {
		return w.quoted(w.pick(number, number, number, "+"+number, " "+number, "0"+number))
	}
	return number
}

// quoted writes a text, each rune in one of the ways that JSON allows.
func (w *resultWriter) quoted(text string) string {
	escaped := w.oneIn(6)
	out := `"`
	for _, r := range text {
		short := strings.IndexRune("\"\\/\b\f\n\r\t", r)
		switch {
		case r > 0xffff && (escaped && w.oneIn(2)):
			r -= 0x10000
			out += fmt.Sprintf(`\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r <= 0xffff && (escaped && w.oneIn(3) || r < ' ' && short < 0):
			out += fmt.Sprintf(`\u%04x`, r)
		case r < ' ' || r == '"' || r == '\\' || r == '/' && w.oneIn(2):
			out += `\` + `"\/bfnrt`[short:short+1]
		default:
			out += string(r)
		}
	}
	return out + `"`
}
