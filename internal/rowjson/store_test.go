package rowjson_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// stored reads rows of one value each into a struct with a field of type T, and returns the field after each row. Whether
// the row is written while it is split, or behind that, makes no difference.
func stored[T any](t *testing.T, values ...string) (all []T, wrong *rowjson.ColumnError) {
	t.Helper()
	type holder struct {
		A T `column:"a"`
	}
	var first, second holder
	early, err := fields.Target(&first)
	require.NoError(t, err)
	late, err := fields.Target(&second)
	require.NoError(t, err)
	r := newReader(`{"columns":[{"name":"a"}],"rows":[[`+strings.Join(values, "],[")+`]],"total_results":0}`, 1<<20)
	for r.Next() {
		wrong := early.Store(r.Row())
		require.Equal(t, wrong, late.Store(r.Row().Clone()))
		if wrong != nil {
			return all, wrong
		}
		assert.Equal(t, first, second)
		all = append(all, first.A)
	}
	require.NoError(t, r.Err())
	return all, nil
}

// storedAs expects what a field of type T holds after each of some rows.
func storedAs[T any](want ...T) func(*testing.T, ...string) {
	return func(t *testing.T, values ...string) {
		t.Helper()
		got, wrong := stored[T](t, values...)
		require.Nil(t, wrong)
		assert.Equal(t, want, got)
	}
}

type (
	action  string
	seconds int32
)

// Every kind of field takes the whole range of its type, in digits and in quotes.
func TestStoreIntoEveryKindOfField(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	x := "x"
	for _, tt := range []struct {
		kind   string
		values []string
		stores func(*testing.T, ...string)
	}{
		{"int", []string{`5`, `"-6"`, `0`}, storedAs(5, -6, 0)},
		{"int8", []string{`127`, `"-128"`, `-128`}, storedAs[int8](127, -128, -128)},
		{"int16", []string{`32767`, `"-32768"`}, storedAs[int16](math.MaxInt16, math.MinInt16)},
		{"int32", []string{`2147483647`, `"-2147483648"`}, storedAs[int32](math.MaxInt32, math.MinInt32)},
		{"int64", []string{`9223372036854775807`, `"-9223372036854775808"`}, storedAs[int64](math.MaxInt64, math.MinInt64)},
		{"a type of int32", []string{`60`, `"61"`}, storedAs[seconds](60, 61)},
		{"uint", []string{`5`, `"6"`, `0`}, storedAs[uint](5, 6, 0)},
		{"uint8", []string{`255`, `"254"`}, storedAs[uint8](255, 254)},
		{"uint16", []string{`65535`, `"65534"`}, storedAs[uint16](65535, 65534)},
		{"uint32", []string{`4294967295`, `"4294967294"`}, storedAs[uint32](4294967295, 4294967294)},
		{"uint64", []string{`18446744073709551615`, `"18446744073709551614"`}, storedAs[uint64](18446744073709551615, 18446744073709551614)},
		{"uintptr", []string{`5`, `"6"`}, storedAs[uintptr](5, 6)},
		{"float32", []string{`0.5`, `"-3e38"`}, storedAs[float32](0.5, -3e38)},
		{"float64", []string{`0.9`, `"-3e300"`}, storedAs(0.9, -3e300)},
		{"bool", []string{`true`, `"false"`, `"true"`, `false`}, storedAs(true, false, true, false)},
		{"string", []string{`"x"`, `""`, `5`, `-0.5`, `true`, `"\u0041"`, `"x"`}, storedAs("x", "", "5", "-0.5", "true", "A", "x")},
		{"a type of string", []string{`"BLOCK"`, `"WARN"`}, storedAs[action]("BLOCK", "WARN")},
		{"json.Number", []string{`1.50`, `-0`, `1E2`}, storedAs[json.Number]("1.50", "-0", "1E2")},
		{
			"time.Time",
			[]string{`"2026-11-20T08:30:00"`, `"2026-11-20 08:30:01"`, `"2026-11-21T08:30:02"`},
			storedAs(at, at.Add(time.Second), at.Add(24*time.Hour+2*time.Second)),
		},
		{"netip.Addr", []string{`"192.0.2.1"`, `"::"`}, storedAs(netip.AddrFrom4([4]byte{192, 0, 2, 1}), netip.IPv6Unspecified())},
		{
			"netip.Prefix",
			[]string{`"::/8"`, `"192.0.2.0\/24"`},
			storedAs(netip.PrefixFrom(netip.IPv6Unspecified(), 8), netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, 0}), 24)),
		},
		{"a TextUnmarshaler", []string{`-18446744073709551616`, `"7"`}, storedAs(*new(big.Int).Lsh(big.NewInt(-1), 64), *big.NewInt(7))},
		{"a pointer", []string{`"x"`, `null`, `"x"`}, storedAs(&x, nil, &x)},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			tt.stores(t, tt.values...)
		})
	}
}

// A whole Value takes everything, null too.
func TestStoreAWholeValue(t *testing.T) {
	t.Parallel()
	got, wrong := stored[kept](t, `"x"`, `null`, `1.50`)
	require.Nil(t, wrong)
	var raw []string
	for _, k := range got {
		raw = append(raw, string(k.value.Raw()))
	}
	assert.Equal(t, []string{`"x"`, `null`, `1.50`}, raw)
}

// Rows that were read before stay as they are when the next one comes.
func TestStoreLeavesEarlierRows(t *testing.T) {
	t.Parallel()
	pointers, wrong := stored[*int](t, "1", "2")
	require.Nil(t, wrong)
	assert.Equal(t, 1, *pointers[0])
	numbers, wrong := stored[big.Int](t, "11111111", "22222222") // which keeps its memory
	require.Nil(t, wrong)
	assert.Equal(t, "11111111", numbers[0].String())
	behind, wrong := stored[*big.Int](t, "11111111", "22222222", "null")
	require.Nil(t, wrong)
	assert.Equal(t, "[11111111 22222222 <nil>]", fmt.Sprint(behind))
}

// storeError returns the error for a value that does not fit a field of type T.
func storeError[T any](t *testing.T, value string) error {
	t.Helper()
	_, wrong := stored[T](t, value)
	require.NotNil(t, wrong, value)
	assert.Equal(t, "a", wrong.Column)
	assert.Equal(t, value, wrong.Value)
	return wrong.Err
}

const noPointer = "null does not fit; make the field a pointer, which is nil then"

// A value that does not fit is an error that says why, for every kind of field.
func TestValuesThatDoNotFitTheirField(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    string
		store   func(*testing.T, string) error
		refuses map[string]string
	}{
		{"int", storeError[int], map[string]string{
			`1.5`: noSyntax, `1e3`: noSyntax, `"many"`: `"many"` + noNumber, `""`: `""` + noNumber, `true`: noSyntax, `"+5"`: `"+5"` + noNumber, `"05"`: `"05"` + noNumber,
			`9223372036854775808`: noRange, `null`: noPointer,
		}},
		{"int8", storeError[int8], map[string]string{`128`: noRange, `"-129"`: noRange, `"many"`: `"many"` + noNumber, `"05"`: `"05"` + noNumber, `null`: noPointer}},
		{"int16", storeError[int16], map[string]string{`32768`: noRange, `-32769`: noRange}},
		{"int32", storeError[int32], map[string]string{`2147483648`: noRange, `-2147483649`: noRange}},
		{"int64", storeError[int64], map[string]string{`9223372036854775808`: noRange, `-9223372036854775809`: noRange}},
		{"uint", storeError[uint], map[string]string{
			`-1`: noSyntax, `1.5`: noSyntax, `"many"`: `"many"` + noNumber, `true`: noSyntax, `"05"`: `"05"` + noNumber, `"+5"`: `"+5"` + noNumber,
			`18446744073709551616`: noRange, `null`: noPointer,
		}},
		{"uint8", storeError[uint8], map[string]string{`256`: noRange, `-1`: noSyntax}},
		{"uint16", storeError[uint16], map[string]string{`65536`: noRange}},
		{"uint32", storeError[uint32], map[string]string{`"4294967296"`: noRange}},
		{"uint64", storeError[uint64], map[string]string{`18446744073709551616`: noRange}},
		{"float32", storeError[float32], map[string]string{
			`1e39`: "1e39 is out of range of a float32", `"inf"`: `"inf"` + noNumber, `true`: `true` + noNumber, `null`: noPointer,
		}},
		{"float64", storeError[float64], map[string]string{`-1e400`: "-1e400" + noFloat, `"0x1p-2"`: `"0x1p-2"` + noNumber, `""`: `""` + noNumber}},
		{"bool", storeError[bool], map[string]string{
			`1`: "1 is no bool", `"t"`: `"t" is no bool`, `"True"`: `"True" is no bool`, `""`: `"" is no bool`, `null`: noPointer,
		}},
		{"string", storeError[string], map[string]string{`null`: noPointer}},
		{"json.Number", storeError[json.Number], map[string]string{
			`"1"`: `"1"` + noNumber, `true`: `true` + noNumber, `false`: `false` + noNumber, `null`: noPointer,
		}},
		{"time.Time", storeError[time.Time], map[string]string{
			`"yesterday"`: `"yesterday" is no timestamp`, `1700000000`: `1700000000 is no timestamp`, `null`: noPointer,
		}},
		{"netip.Addr", storeError[netip.Addr], map[string]string{`"192.0.2.256"`: `"192.0.2.256" is no IP address`, `1`: `1 is no IP address`, `null`: noPointer}},
		{"netip.Prefix", storeError[netip.Prefix], map[string]string{`"192.0.2.1"`: "no '/'", `5`: "no '/'", `null`: noPointer}},
		{"a TextUnmarshaler", storeError[big.Int], map[string]string{`"many"`: "cannot unmarshal", `null`: noPointer}},
		{"a pointer", storeError[*int8], map[string]string{`128`: noRange, `"many"`: `"many"` + noNumber}},
		{"a pointer to a pointer", storeError[**bool], map[string]string{`1`: "1 is no bool"}},
	} {
		for value, says := range tt.refuses {
			t.Run(value+" into "+tt.kind, func(t *testing.T) {
				t.Parallel()
				if strings.HasPrefix(says, value) {
					assert.EqualError(t, tt.store(t, value), says)
				} else {
					assert.ErrorContains(t, tt.store(t, value), says)
				}
			})
		}
	}
}
