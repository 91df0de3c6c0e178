package rowjson_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// What is wrong with a number. An error of a plan shows the one of strconv, and Int64 and Float64 have words of their
// own.
const (
	noSyntax = "invalid syntax"
	noRange  = "value out of range"
	noNumber = " is not a number"
	noWhole  = " is not a whole number of 64 bits"
	noFloat  = " is out of range of a float64"
)

// A number in quotes is read if JSON would take it for a number without them. Everything else is an error that says
// what the value is not.
func TestNumbersInEverySpelling(t *testing.T) {
	t.Parallel()
	tests := []struct {
		raw    string
		number any // an int64, a float64 that is no int64, or nil
		whole  string
		float  string
	}{
		{`0`, int64(0), "", ""},
		{`-0`, int64(0), "", ""},
		{`9`, int64(9), "", ""},
		{`"9"`, int64(9), "", ""},
		{`"-9"`, int64(-9), "", ""},
		{`"90"`, int64(90), "", ""},
		{`"\u0031\u0030"`, int64(10), "", ""},
		{`9223372036854775807`, int64(math.MaxInt64), "", ""},
		{`"-9223372036854775808"`, int64(math.MinInt64), "", ""},
		{`9223372036854775808`, 9223372036854775808.0, noWhole, ""},
		{`"-9223372036854775809"`, -9223372036854775808.0, noWhole, ""},
		{`0.9`, 0.9, noWhole, ""},
		{`"9.5"`, 9.5, noWhole, ""},
		{`"9.09"`, 9.09, noWhole, ""},
		{`-1e3`, -1000.0, noWhole, ""},
		{`"1E-2"`, 0.01, noWhole, ""},
		{`1e400`, nil, noWhole, noFloat},
		{`"-1e400"`, nil, noWhole, noFloat},
		{`null`, nil, noWhole, noNumber},
		{`true`, nil, noWhole, noNumber},
		{`false`, nil, noWhole, noNumber},
		{`""`, nil, noWhole, noNumber},
		{`"true"`, nil, noWhole, noNumber},
		{`"null"`, nil, noWhole, noNumber},
		{`"+5"`, nil, noWhole, noNumber},
		{`"05"`, nil, noWhole, noNumber},
		{`"-05"`, nil, noWhole, noNumber},
		{`" 5"`, nil, noWhole, noNumber},
		{`"5 "`, nil, noWhole, noNumber},
		{`"5\n"`, nil, noWhole, noNumber},
		{`"5."`, nil, noWhole, noNumber},
		{`".5"`, nil, noWhole, noNumber},
		{`"-"`, nil, noWhole, noNumber},
		{`"[5]"`, nil, noWhole, noNumber},
		{`"NaN"`, nil, noWhole, noNumber},
		{`"Inf"`, nil, noWhole, noNumber},
		{`"0x5"`, nil, noWhole, noNumber},
		{`"5_0"`, nil, noWhole, noNumber},
		{`"\u0663"`, nil, noWhole, noNumber}, // the digit three of another script
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			t.Parallel()
			v := valueOf(t, tt.raw)
			n, err := v.Int64()
			want, _ := tt.number.(int64)
			assert.Equal(t, want, n)
			assertError(t, tt.raw, tt.whole, err)
			f, err := v.Float64()
			wantFloat, isFloat := tt.number.(float64)
			if !isFloat {
				wantFloat = float64(want)
			}
			assert.InDelta(t, wantFloat, f, 0)
			assertError(t, tt.raw, tt.float, err)
		})
	}
}

// assertError expects an error that names the value and says what it is not; "" for none.
func assertError(t *testing.T, raw, says string, err error) {
	t.Helper()
	if says == "" {
		assert.NoError(t, err)
	} else {
		assert.EqualError(t, err, raw+says)
	}
}

func TestTimestampsInEverySpelling(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	for raw, want := range map[string]time.Time{
		`"2026-11-20T08:30:00"`:           at,
		`"2026-11-20 08:30:00"`:           at,
		`"2026-11-20T08:30:00Z"`:          at,
		`"2026-11-20T09:30:00+01:00"`:     at,
		`"2026-11-20T08:30:00.123"`:       at.Add(123 * time.Millisecond),
		`"2026-11-20 08:30:00.5"`:         at.Add(500 * time.Millisecond),
		`"2026-11-20T08:30:00.000000001"`: at.Add(1),
		`"2026-11-20T08:30:00\u002e5"`:    at.Add(500 * time.Millisecond),
		`"2026-11-20"`:                    time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		`"2024-02-29T23:59:59"`:           time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC),
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			got, err := valueOf(t, raw).Time()
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	for _, raw := range []string{
		`null`, `true`, `1700000000`, `""`, `"yesterday"`, `"2026-02-29T00:00:00"`, `"2026-11-20T24:00:00"`, `"2026-11-20T08:30:00."`, `"2026-11-20T08:30"`,
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			got, err := valueOf(t, raw).Time()
			require.EqualError(t, err, raw+" is not a timestamp")
			assert.Zero(t, got)
		})
	}
	_, err := rowjson.Value{}.Time()
	require.EqualError(t, err, "null is not a timestamp")
}

func TestAddressesInEverySpelling(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]netip.Addr{
		`"192.0.2.1"`:             netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		`"0.9.10.255"`:            netip.AddrFrom4([4]byte{0, 9, 10, 255}),
		`"192.0.2.\u0031"`:        netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		`"::"`:                    netip.IPv6Unspecified(),
		`"::FFFF"`:                netip.AddrFrom16([16]byte{14: 0xff, 15: 0xff}),
		`"2001:db8::1"`:           netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: 1}),
		`"::ffff:192.0.2.1"`:      netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}),
		`"2001\u003adb8::\u0031"`: netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: 1}),
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			got, err := valueOf(t, raw).Addr()
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	for _, raw := range []string{
		`null`, `false`, `192`, `192.0`, `""`, `"192.0.2"`, `"192.0.2.1.1"`, `"192.0.2.256"`, `"192.0.2.01"`, `"192.0.2.1 "`, `"192.0.2.0/24"`, `"2001:db8::1::"`, `"host"`,
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			got, err := valueOf(t, raw).Addr()
			require.EqualError(t, err, raw+" is not an IP address")
			assert.Zero(t, got)
		})
	}
	_, err := rowjson.Value{}.Addr()
	require.EqualError(t, err, "null is not an IP address")
}

// A column of texts has few different ones, and each of them is built once. Texts of more than 64 bytes are not kept.
func TestTextsOfAColumnAreBuiltOnce(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	var got struct {
		A string `column:"a"`
	}
	for name, tt := range map[string]struct {
		value  string
		builds bool
	}{
		"one byte":  {`"a"`, false},
		"a country": {`"CN"`, false},
		"64 bytes":  {`"` + strings.Repeat("x", 64) + `"`, false},
		"65 bytes":  {`"` + strings.Repeat("x", 65) + `"`, true},
		"escapes":   {`"\"Chrome\""`, false},
		"not ASCII": {`"Köln"`, false},
		"broken":    {"\"K\xffln\"", false},
		"17 bytes":  {`"` + strings.Repeat("x", 17) + `"`, false},
	} {
		row := one(t, "["+tt.value+"]").Clone()
		target, err := fields.Target(&got)
		require.NoError(t, err)
		allocs := testing.AllocsPerRun(10, func() {
			if wrong := target.Store(row); wrong != nil {
				panic(wrong)
			}
		})
		assert.Equal(t, tt.builds, allocs > 0, "%s: %v", name, allocs)
		var want string
		require.NoError(t, json.Unmarshal([]byte(tt.value), &want))
		assert.Equal(t, want, got.A)
	}
}
