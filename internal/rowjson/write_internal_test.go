package rowjson

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

var (
	tagged = Fields{Tag: "column", Value: func(any) *Value { return nil }}

	fieldTypes = []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[int64](), reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[uint8](),
		reflect.TypeFor[*string](), reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[json.Number](), reflect.TypeFor[*netip.Addr](),
		reflect.TypeFor[netip.Prefix](), reflect.TypeFor[int16](), reflect.TypeFor[uint64](),
	}
)

// structFor returns a pointer to a struct with a field for each of these columns. The choice of their types starts with
// kind; every third choice skips the column.
func structFor(columns, kind int) any {
	var fields []reflect.StructField
	for i := range columns {
		if (i+kind)%4 == 3 {
			continue
		}
		fields = append(fields, reflect.StructField{
			Name: "F" + strconv.Itoa(i), Type: fieldTypes[(i*7+kind)%len(fieldTypes)], Tag: reflect.StructTag(fmt.Sprintf(`column:"%d"`, i)),
		})
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// A row that is written while it is split has the same marks and the same values as a row that is split first. A Plan
// writes each row that fits, and no other.
func FuzzWriteRow(f *testing.F) {
	for _, seed := range []string{
		`"a",1,"2026-11-20T00:00:00.123","192.0.2.1",7,null,0.5,true,12,"2001:db8::1","192.0.2.0/24",-3,18446744073709551615]`,
		` "\u00fc" , -0 ,"2026-11-20T00:00:00Z" , "::1",255,"x",1e3,"false",1.5,null,"::/0",32767,0 ] x`,
		`"12345678",123456789012345678,"2026-11-20T00:00:00","x"]`, `"1234567",01]`, `"",1]`, `"\ud800",1,2]`, `1,2,3`, `"a" "b"]`, `"a",]`, `"abcdefghij`,
		`x2026-11-20T00:00:00.123"]`, `"a",256,2]`, `"12345678901234567890",9223372036854775807]`, `1]`, `]`, `[1]]`,
	} {
		for kind := range fieldTypes {
			f.Add([]byte(seed), uint8(kind))
		}
	}
	f.Fuzz(func(t *testing.T, rest []byte, kind uint8) {
		text := append([]byte("["), rest...)
		var scan rowScan
		end, err := scan.scan(text)
		names := max(1, len(scan.marks)-1)
		if err != nil {
			names = 1 + int(kind)%3
		}
		cols := &columns{index: map[string]int{}, redactor: nothingSecret{}}
		for i := range names {
			cols.names = append(cols.names, strconv.Itoa(i))
			cols.index[strconv.Itoa(i)] = i
		}
		split, written := structFor(names, int(kind)), structFor(names, int(kind))
		into, err2 := tagged.Target(split)
		if err2 != nil {
			return // no field
		}
		ok := err == nil && len(scan.marks)-1 == names
		if ok {
			row := Row{table: &table{columns: cols, text: text[:end], marks: scan.marks}}
			ok = into.Store(row) == nil
		}
		target, err := tagged.Target(written)
		require.NoError(t, err)
		plan, missing := target.Plan(Row{table: &table{columns: cols}})
		require.Nil(t, missing)
		var again rowScan
		for range 2 { // the second time from what is kept of the columns
			again.replaced = 0
			got := plan.write(&again, text)
			if !ok {
				require.Zero(t, got, "%q", text)
				require.Zero(t, again.replaced)
				return
			}
			require.Equal(t, end, got, "%q", text)
			assert.Equal(t, scan.marks, again.marks, "%q", text)
			assert.Equal(t, scan.replaced, again.replaced, "%q", text)
			assert.Equal(t, split, written, "%q", text)
		}
	})
}

// A read takes the plain values of its field, and says where a value ends that it does not take. If it cannot say that,
// it returns 0.
func TestReads(t *testing.T) {
	t.Parallel()
	type got struct {
		text  string
		whole int16
		time  time.Time
		addr  netip.Addr
	}
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	const taken, left, other = 1, 2, 0
	for _, tt := range []struct {
		field, value string
		what         int
		want         got
	}{
		{"text", `"DE"`, taken, got{text: "DE"}},
		{"text", `""`, taken, got{}},
		{"text", `"1234567"`, taken, got{text: "1234567"}},
		{"text", `"12345678"`, taken, got{text: "12345678"}},
		{"text", `"123456789012345678901"`, taken, got{text: "123456789012345678901"}},
		{"text", `"` + strings.Repeat("x", 100) + `"`, taken, got{text: strings.Repeat("x", 100)}},
		{"text", `12`, left, got{}},
		{"text", `-12`, other, got{}},
		{"text", `null`, other, got{}},
		{"text", `"a\u0062"`, other, got{}},
		{"text", `"1234567890\n"`, other, got{}},
		{"text", `"ü"`, other, got{}},
		{"text", `"123456789ü"`, other, got{}},
		{"text", ` "a"`, other, got{}},
		{"whole", `0`, taken, got{}},
		{"whole", `7`, taken, got{whole: 7}},
		{"whole", `32767`, taken, got{whole: 32767}},
		{"whole", `32768`, left, got{}},
		{"whole", `123456789012345678`, left, got{}},
		{"whole", `98765432109876543210`, left, got{}},
		{"whole", `18446744073709551623`, left, got{}},
		{"whole", `07`, other, got{}},
		{"whole", `-7`, other, got{}},
		{"whole", `7.5`, other, got{}},
		{"whole", `7e1`, other, got{}},
		{"whole", `"7"`, left, got{}},
		{"whole", `x`, other, got{}},
		{"whole", ``, other, got{}},
		{"time", `"2026-11-20T08:30:00"`, taken, got{time: at}},
		{"time", `"2026-11-20T08:30:00.250"`, taken, got{time: at.Add(250 * time.Millisecond)}},
		{"time", `"2026-11-20T08:30:00Z"`, taken, got{time: at}},
		{"time", `"2026-11-20T08:30:00.5"`, taken, got{time: at.Add(500 * time.Millisecond)}},
		{"time", `"2026-11-20T08:30:00.123456789"`, taken, got{time: at.Add(123456789)}},
		{"time", `"2026-11-20T08:30:00.250Z"`, taken, got{time: at.Add(250 * time.Millisecond)}},
		{"time", `"2026-11-20"`, left, got{}},
		{"time", `"2026-11-20T08:30:61"`, left, got{}},
		{"time", `"2026-11-20T08:30:00+0100"`, left, got{}},
		{"time", `x2026-11-20T08:30:00"`, other, got{}},
		{"time", `"2026-11-20T08:30:\u0030"`, other, got{}},
		{"time", `17`, left, got{}},
		{"time", `"a","b","c","d","e",",,"`, left, got{}}, // ends where a timestamp would end
		{"addr", `"192.0.2.1"`, taken, got{addr: netip.MustParseAddr("192.0.2.1")}},
		{"addr", `"2001:db8::1"`, taken, got{addr: netip.MustParseAddr("2001:db8::1")}},
		{"addr", `"192.0.2.256"`, left, got{}},
		{"addr", `"fe80::1%eth0"`, left, got{}},
		{"addr", `"::ffff:192.0.2.1"`, left, got{}},
		{"addr", `7`, left, got{}},
		{"addr", `"\u0031::"`, other, got{}},
		{"addr", `null`, other, got{}},
		{"none", `"a"`, left, got{}},
		{"none", `17`, left, got{}},
		{"none", `017`, other, got{}},
		{"none", `true`, other, got{}},
		{"none", ``, other, got{}},
	} {
		var into got
		r := map[string]read{
			"text": readText(&into.text, newTexts()), "whole": readWhole(&into.whole), "time": readTime(&into.time, new(wire.Date)),
			"addr": readAddr(&into.addr), "none": readOnly,
		}[tt.field]
		value, _, _ := strings.Cut(tt.value, `,"b"`)
		for _, behind := range []string{`],["1234567890123456789012345"]`, `,"12345678901234567890123"]`, ` ,1,2,3,4,5,6,7,8,9,10,11,12]`} {
			text := []byte(`["x",` + tt.value + behind)
			for range 2 { // the second time from what is kept of the column
				end, written := r(text, 5)
				assert.Equal(t, tt.what == taken, written, "%s: %s", tt.field, text)
				if tt.what == other {
					assert.Zero(t, end, "%s: %s", tt.field, text)
				} else {
					assert.Equal(t, 5+len(value), end, "%s: %s", tt.field, text)
				}
				assert.Equal(t, tt.want, into, "%s: %s", tt.field, text)
			}
		}
		for cut := range len(value) + 6 { // a text that ends within the value, or before it
			if tt.field == "whole" || value == "17" || value == "12" || value == "7" {
				break // a shorter number is a number too
			}
			end, written := r([]byte(`["x",` + value + `]`)[:cut:cut], min(5, cut))
			assert.False(t, written && cut < 5+len(value), "%s: %s, %d bytes", tt.field, value, cut)
			assert.True(t, end == 0 || cut >= 5+len(value), "%s: %s, %d bytes", tt.field, value, cut)
		}
		end, written := r([]byte(`["x",12`), 5)
		assert.Zero(t, end, "a number may go on")
		assert.False(t, written)
	}
}

// nothingSecret redacts nothing.
type nothingSecret struct{}

func (nothingSecret) Excerpt(text []byte, _ int, _ bool) []byte { return text }
func (nothingSecret) Error(err error) error                     { return err }

type pair struct {
	A string `column:"a"`
	B int    `column:"b"`
}

// readerOf reads rows with the columns a and b.
func readerOf(rows string) *Reader {
	body := `{"columns":[{"name":"a"},{"name":"b"}],"rows":[` + rows + `],"total_results":1}`
	return NewReader(strings.NewReader(body), Config{Limit: Limit{Bytes: 1 << 20}, Redactor: nothingSecret{}})
}

// A Target has the values of the row that it is asked to store, whichever rows were read in the meantime.
func TestRowsThatAreWrittenEarly(t *testing.T) {
	t.Parallel()
	var got pair
	target, err := tagged.Target(&got)
	require.NoError(t, err)
	store := func(row Row) pair {
		got = pair{"stale", -1}
		require.Nil(t, target.Store(row))
		return got
	}
	next := func(r *Reader) Row {
		require.True(t, r.Next(), "%v", r.Err())
		return r.Row()
	}
	one, two := readerOf(`["a",1],["b",2],["c",3],["d",4],["e",5]`), readerOf(`["v",11],["w",12],["x",13],["y",14]`)
	assert.Equal(t, pair{"a", 1}, store(next(one)))
	first := one.Row().Clone()

	got = pair{}
	second := next(one)
	assert.Equal(t, pair{"b", 2}, got, "the Reader has written it")
	require.Nil(t, target.Store(second))
	assert.Equal(t, pair{"b", 2}, got)
	assert.Equal(t, pair{"a", 1}, store(first), "a copy of an earlier row")

	// Two readers in turn, in every order.
	assert.Equal(t, pair{"v", 11}, store(next(two)))
	ofOne, ofTwo := next(one), next(two)
	require.Nil(t, target.Store(ofOne))
	assert.Equal(t, pair{"c", 3}, got)
	require.Nil(t, target.Store(ofTwo))
	assert.Equal(t, pair{"w", 12}, got)
	ofTwo, ofOne = next(two), next(one)
	require.Nil(t, target.Store(ofTwo))
	assert.Equal(t, pair{"x", 13}, got)
	require.Nil(t, target.Store(ofOne))
	assert.Equal(t, pair{"d", 4}, got)

	// A second Target of the same Reader.
	var other struct {
		B int64 `column:"b"`
	}
	another, err := tagged.Target(&other)
	require.NoError(t, err)
	last := next(one)
	require.Nil(t, another.Store(last))
	assert.Equal(t, int64(5), other.B)
	require.Nil(t, target.Store(last))
	assert.Equal(t, pair{"e", 5}, got)
	assert.Equal(t, `["e",5]`, string(last.JSON()), "a row that was written is a row like all others")
}

// A row with an error or with a value that does not fit changes nothing about the rows before and behind it.
func TestRowsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for rows, want := range map[string]string{
		`["a",1],["b",2],["c"]`:          "row 3 has 1 values, and there are 2 columns",
		`["a",1],["b",2],["c",3,4]`:      "row 3 has 3 values, and there are 2 columns",
		`["a",1],["b",2],["c",x]`:        "row 3 is no JSON",
		`["a",1],["b",2],["c",3}`:        "row 3 is no JSON",
		`["a",1],["b",2],["c",[3]]`:      "row 3 holds a value",
		`["a",1],["b",2];["c",3]`:        `';' behind row 2`,
		`["a",1],["b",2],3`:              "row 3 is no array",
		`["a",1] , ["b",2] , [ "c" , 3]`: "",
	} {
		var got pair
		target, err := tagged.Target(&got)
		require.NoError(t, err)
		r := readerOf(rows)
		for _, want := range []pair{{"a", 1}, {"b", 2}} {
			require.True(t, r.Next(), "%s: %v", rows, r.Err())
			require.Nil(t, target.Store(r.Row()))
			assert.Equal(t, want, got, rows)
		}
		if want == "" {
			require.True(t, r.Next(), "%s: %v", rows, r.Err())
			require.Nil(t, target.Store(r.Row()))
			assert.Equal(t, pair{"c", 3}, got, rows)
			assert.False(t, r.Next())
			require.NoError(t, r.Err())
			continue
		}
		assert.False(t, r.Next(), rows)
		require.ErrorContains(t, r.Err(), want, rows)
	}
	var got pair
	target, err := tagged.Target(&got)
	require.NoError(t, err)
	r := readerOf(`["a",1],["b","x"],["c",3]`)
	require.True(t, r.Next())
	require.Nil(t, target.Store(r.Row()))
	require.True(t, r.Next())
	wrong := target.Store(r.Row())
	require.NotNil(t, wrong)
	assert.Equal(t, "b", wrong.Column)
	require.True(t, r.Next())
	require.Nil(t, target.Store(r.Row()))
	assert.Equal(t, pair{"c", 3}, got)
}
