package rowjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		end := scan.scan(text)
		names := max(1, len(scan.marks)-1)
		if end == 0 {
			names = 1 + int(kind)%3
		}
		cols := &columns{index: map[string]int{}, redactor: nothingSecret{}}
		for i := range names {
			cols.names = append(cols.names, strconv.Itoa(i))
			cols.index[strconv.Itoa(i)] = i
		}
		split, written := structFor(names, int(kind)), structFor(names, int(kind))
		into, err := tagged.Target(split)
		if err != nil {
			return // no field
		}
		valid := end > 0 && len(scan.marks)-1 == names
		var misfit *Misfit
		if valid {
			misfit = into.Store(Row{table: &table{columns: cols, text: text[:end], marks: scan.marks}})
		}
		target, err := tagged.Target(written)
		require.NoError(t, err)
		require.Nil(t, target.find(cols))
		target.writer = target.newWriter(len(cols.names))
		row := Row{table: &table{columns: cols, arrives: true, writer: target.writer}}
		var again rowScan
		for range 2 { // the second time from what is kept of the columns
			got := target.writer.write(&again, text)
			if !valid {
				require.Zero(t, got, "%q", text)
				return
			}
			require.Equal(t, end, got, "%q", text)
			row.table.text, row.table.marks, row.table.scan, row.table.written = text[:end], nil, &again, true
			wrong := target.Store(row)
			require.Equal(t, misfit, wrong, "%q", text)
			if wrong == nil {
				assert.Equal(t, split, written, "%q", text)
			}
			assert.Equal(t, scan.marks, row.marks(), "%q", text)
		}
	})
}

// nothingSecret redacts nothing.
type nothingSecret struct{}

func (nothingSecret) Excerpt(text []byte, _ int) []byte { return text }
func (nothingSecret) Error(err error) error             { return err }

type pair struct {
	A string `column:"a"`
	B int    `column:"b"`
}

// readerOf reads rows with the columns a and b.
func readerOf(rows string) *Reader {
	body := `{"columns":[{"name":"a"},{"name":"b"}],"rows":[` + rows + `],"total_results":1}`
	return NewReader(strings.NewReader(body), Config{Limit: Limit{Bytes: 1 << 20}, Redactor: nothingSecret{}})
}

// A Target has the values of the row that it stores. Several Readers and Targets may be used in any order. Pointers are
// new for each row.
func TestRowsThatAreWrittenEarly(t *testing.T) {
	t.Parallel()
	type record struct {
		A string `column:"a"`
		B *int   `column:"b"`
		C int64  `column:"c"`
	}
	const rows = 30
	wanted := func(reader, row int) record {
		want := record{A: fmt.Sprint(reader, row), C: int64(100*reader + row)}
		if (reader+row)%3 > 0 {
			b := reader * row
			want.B = &b
		}
		return want
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		var readers [3]*Reader
		var targets [3]*Target
		var at [3]int
		var into [3]record
		for i := range readers {
			var text []string
			for row := range rows {
				want := wanted(i, row+1)
				b, _ := json.Marshal(want.B)
				text = append(text, fmt.Sprintf(`["%s",%s,%d]`, want.A, b, want.C))
			}
			var body io.Reader = strings.NewReader(`{"columns":[{"name":"a"},{"name":"b"},{"name":"c"}],"rows":[` + strings.Join(text, ",") + `],"total_results":1}`)
			if r.IntN(2) == 0 {
				body = iotest.OneByteReader(body)
			}
			readers[i] = NewReader(body, Config{Limit: Limit{Bytes: 1 << 20}, Redactor: nothingSecret{}})
			var err error
			targets[i], err = tagged.Target(&into[i])
			require.NoError(t, err)
		}
		known := map[*int]bool{}
		for range 200 {
			i, k := r.IntN(3), r.IntN(3)
			if at[i] == 0 || r.IntN(3) > 0 && at[i] < rows {
				require.True(t, readers[i].Next(), "seed %d: %v", seed, readers[i].Err())
				at[i]++
			}
			row := readers[i].Row()
			if r.IntN(4) == 0 {
				row = row.Clone()
			}
			require.Nil(t, targets[k].Store(row))
			require.Equal(t, wanted(i, at[i]), into[k], "seed %d", seed)
			if b := into[k].B; b != nil {
				require.False(t, known[b], "seed %d: a pointer twice", seed)
				known[b] = true
			}
		}
	}
}

// counting counts the calls of its UnmarshalText, and writes over the argument.
type counting struct {
	text string
}

var unmarshalled atomic.Int64

func (c *counting) UnmarshalText(text []byte) error {
	unmarshalled.Add(1)
	c.text = string(text)
	for i := range text {
		text[i] = 'x'
	}
	if c.text == "wrong" {
		return errors.New("wrong")
	}
	return nil
}

// UnmarshalText is called once for each row that is stored, and not for others.
func TestUnmarshalTextOfRowsThatAreStored(t *testing.T) { //nolint:paralleltest // counts calls
	var got struct {
		A string   `column:"a"`
		C counting `column:"a"`
		D string   `column:"a"`
	}
	target, err := tagged.Target(&got)
	require.NoError(t, err)
	r := readerOf(`["a",1],["b",2],["c",3],["d",4],["e",5],["wrong",6]`)
	before := unmarshalled.Load()
	for _, want := range "abde" {
		require.True(t, r.Next())
		if want == 'd' { // c is not stored
			require.True(t, r.Next())
		}
		require.Nil(t, target.Store(r.Row()))
		assert.Equal(t, []string{string(want), string(want), string(want)}, []string{got.A, got.C.text, got.D})
	}
	require.True(t, r.Next())
	wrong := target.Store(r.Row())
	require.NotNil(t, wrong)
	assert.Equal(t, "C", wrong.Field)
	assert.Equal(t, int64(5), unmarshalled.Load()-before)
}

// A struct may have more fields than a fieldSet has bits.
func TestManyFields(t *testing.T) {
	t.Parallel()
	types := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int64](), reflect.TypeFor[*string](), reflect.TypeFor[float64]()}
	for _, columns := range []int{62, 63, 64, 65, 150} {
		var fields []reflect.StructField
		var names, cells []string
		for i := range columns {
			tag := reflect.StructTag(fmt.Sprintf(`column:"%d"`, i))
			fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: types[i%len(types)], Tag: tag})
			names, cells = append(names, fmt.Sprintf(`{"name":"%d"}`, i)), append(cells, strconv.Itoa(100+i))
		}
		row := "[" + strings.Join(cells, ",") + "]"
		body := `{"columns":[` + strings.Join(names, ",") + `],"rows":[` + strings.ReplaceAll(row, "1", "2") + "," + row + "," + row + `],"total_results":3}`
		r := NewReader(strings.NewReader(body), Config{Limit: Limit{Bytes: 1 << 20}, Redactor: nothingSecret{}})
		into := reflect.New(reflect.StructOf(fields))
		target, err := tagged.Target(into.Interface())
		require.NoError(t, err)
		for range 3 {
			require.True(t, r.Next())
			require.Nil(t, target.Store(r.Row()))
		}
		for i, want := range cells {
			require.Equal(t, want, fmt.Sprint(reflect.Indirect(into.Elem().Field(i)).Interface()))
		}
		require.True(t, r.table.written)
	}
}

// Values that most rows have are written while the row is split, so that Store has nothing left to do.
func TestUsualValuesAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	var s struct {
		Text string     `column:"0"`
		N    int64      `column:"1"`
		Time time.Time  `column:"2"`
		Addr netip.Addr `column:"3"`
	}
	target, err := tagged.Target(&s)
	require.NoError(t, err)
	require.Nil(t, target.find(&columns{index: map[string]int{"0": 0, "1": 1, "2": 2, "3": 3}}))
	w := target.newWriter(4)
	var scan rowScan
	for _, row := range []string{
		`["DE",0,"2026-11-20T08:30:00","192.0.2.1"]`,
		`["",-17,"2026-11-20T08:30:00.123","2001:db8::1"]`,
		`["exactly 8",999999999999999999,"2026-11-20T08:30:00Z","198.51.100.255"]`,
		`["/a/path/that/is/longer/than/two/words",1,"2026-11-20T08:30:00.123456Z","2001:db8:0:0:0:0:0:1"]`,
		`["DE" , 1 , "2026-11-20T08:30:00" , "192.0.2.1" ]`,
	} {
		assert.Equal(t, len(row), w.write(&scan, []byte(row)), row)
		assert.Zero(t, w.left, row)
	}
	for row, left := range map[string]fieldSet{
		`["ü",1,"2026-11-20T08:30:00","192.0.2.1"]`: 1, `["DE",null,"2026-11-20T08:30:00","192.0.2.1"]`: 2, `["DE",1,"today","192.0.2.1"]`: 4,
		`["DE",1,"2026-11-20T08:30:00","nowhere"]`: 8, `[null,1e3,null,null]`: 15,
	} {
		assert.Equal(t, len(row), w.write(&scan, []byte(row)), row)
		assert.Equal(t, left, w.left, row)
	}
}

// A row with an error or with a value that does not fit changes nothing about the rows before and behind it.
func TestRowsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for rows, want := range map[string]string{
		`["a",1],["b",2],["c"]`:             "row 3 has 1 values, and there are 2 columns",
		`["a",1],["b",2],["c",3,4]`:         "row 3 has 3 values, and there are 2 columns",
		`["a",1],["b",2],["c",x]`:           "row 3 is not JSON",
		`["a",1],["b",2],["c",3}`:           "row 3 is not JSON",
		`["a",1],["b",2],["c",[3]]`:         "row 3 contains a value",
		`["a",1],["b",2];["c",3]`:           `';' after row 2`,
		`["a",1],["b",2],3`:                 "row 3 is not an array",
		`["a",1] , ["b",2] , [ "c" , 3]`:    "",
		`["a",1],["b",2],["d","x"],["c",3]`: "",
	} {
		var got pair
		target, err := tagged.Target(&got)
		require.NoError(t, err)
		r, all := readerOf(rows), []pair{}
		for r.Next() {
			if wrong := target.Store(r.Row()); wrong == nil {
				all = append(all, got)
			} else {
				assert.Equal(t, "b", wrong.Column)
			}
		}
		if want == "" {
			require.NoError(t, r.Err())
			assert.Equal(t, []pair{{"a", 1}, {"b", 2}, {"c", 3}}, all)
		} else {
			require.ErrorContains(t, r.Err(), want, rows)
			assert.Equal(t, []pair{{"a", 1}, {"b", 2}}, all)
		}
	}
}
