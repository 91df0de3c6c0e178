package suite_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/webdelivery/webdelivery-go"
)

type scanWriter struct{ *rand.Rand }

func (w *scanWriter) oneIn(n int) bool { return w.IntN(n) == 0 }

func (w *scanWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

// pool returns cells of JSON that every field of a column can take, unless there are no such values.
func (w *scanWriter) pool(types []reflect.Type, n int) []string {
	if len(types) == 0 {
		types = []reflect.Type{valueType}
	}
	pool, family := make([]string, n), w.texts()
	for i := range pool {
		misfits := func(t reflect.Type) bool { return setWanted(reflect.New(t).Elem(), pool[i]) != nil }
		for tries := 0; tries == 0 || tries < 100 && slices.ContainsFunc(types, misfits); tries++ {
			pool[i] = w.cell(types[w.IntN(len(types))], i, family)
		}
	}
	return pool
}

func (w *scanWriter) cell(t reflect.Type, i int, family func(i int) string) string {
	switch t {
	case reflect.TypeFor[time.Time]():
		return w.spelled(w.time(i))
	case reflect.TypeFor[netip.Addr]():
		return w.spelled(w.addr())
	case reflect.TypeFor[netip.Prefix]():
		return w.spelled(fmt.Sprint(w.addr(), "/", w.IntN(129)))
	case reflect.TypeFor[netip.AddrPort]():
		return w.spelled(fmt.Sprintf("%s:%d", w.pick("192.0.2.1", "[2001:db8::1]", "[fe80::1%eth0]"), w.IntN(65536)))
	case reflect.TypeFor[json.Number](), reflect.TypeFor[float64](), reflect.TypeFor[float32](), reflect.TypeFor[scanRatio]():
		return w.pick(w.integer(64, true), "-0", "0e5", "1E+2", "1e-7", "-2.5e-3", "16777217", "9007199254740993", "1.7976931348623157e308", "5e-324",
			"3.4028234663852886e38", "0.1000000000000000055511151231257827", fmt.Sprintf("%d.%d", i, w.IntN(100)))
	case reflect.TypeFor[big.Int]():
		return new(big.Int).Lsh(big.NewInt(w.Int64()), uint(w.IntN(100))).String()
	case reflect.TypeFor[ownHex]():
		return w.spelled(strconv.FormatUint(uint64(w.Uint32()>>w.IntN(32)), 16))
	case reflect.TypeFor[webdelivery.Value]():
		return w.pick("null", "true", w.integer(64, true), w.spelled(w.time(i)), w.spelled(family(i)), "\"a\xff\"", `"\ud800\u0041"`, `"\udc00\ud83d\ude00"`)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if w.oneIn(4) {
			return "null"
		}
		return w.cell(t.Elem(), i, family)
	case reflect.Bool:
		return w.pick("true", "false", `"true"`)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return w.quotedNow(w.integer(t.Bits(), false))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return w.quotedNow(w.integer(t.Bits(), true))
	default:
		if w.oneIn(20) {
			return w.pick("true", "7", "1.50", "\"a\xff\"", "\"\xe2\x98\"", `"\ud800\u0041"`)
		}
		return w.spelled(family(i))
	}
}

func (w *scanWriter) quotedNow(number string) string {
	if w.oneIn(5) {
		return `"` + number + `"`
	}
	return number
}

// integer returns a whole number: the least or the greatest of its type, one beside them, or another of any length.
func (w *scanWriter) integer(bits int, signed bool) string {
	most := ^uint64(0) >> (64 - bits)
	if signed {
		most >>= 1
	}
	n := []uint64{most - uint64(w.IntN(3)), w.Uint64() >> w.IntN(64), uint64(w.IntN(12))}[w.IntN(3)] & most
	if text := strconv.FormatUint(n, 10); !signed || w.oneIn(2) {
		return text
	}
	return fmt.Sprint(-1 - int64(n))
}

// time returns a timestamp in one of the layouts, near the one before or far from it.
func (w *scanWriter) time(i int) string {
	at := time.Date(2026, 2, 27, 23, 59, 58, 999_999_990, time.UTC).AddDate(0, i*w.IntN(2), i*w.IntN(2))
	if at = at.Add(time.Duration(i*w.IntN(2)) * time.Second); w.oneIn(4) {
		at = time.Unix(w.Int64N(253_402_300_800), w.Int64N(1e9)).UTC()
	}
	layout := w.pick("2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05", "2006-01-02",
		"2006-01-02T15:04:05.000", "2006-01-02T15:04:05.000000000", "2006-01-02T15:04:05.0Z07:00", "2006-01-02 15:04:05.000000")
	if strings.Contains(layout, "07") {
		at = at.In(time.FixedZone("", 60*15*(w.IntN(112)-56)))
	}
	return at.Format(layout)
}

func (w *scanWriter) addr() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(w.Uint32()) >> w.IntN(8)
	}
	at := 2 * w.IntN(6)
	clear(b[at : w.IntN(16-at-4)/2*2+at+4])
	v4, v6 := netip.AddrFrom4([4]byte(b[:4])), netip.AddrFrom16(b)
	return w.pick(v4.String(), v4.String(), v6.String(), v6.StringExpanded(), strings.ToUpper(v6.String()), "::ffff:"+v4.String(),
		v6.String()+"%"+w.pick("eth0", "a%b", "Zürich", strings.Repeat("z", 70)))
}

// texts returns texts of one family. Most families have texts that a careless comparison or hash takes for equal.
func (w *scanWriter) texts() func(i int) string {
	letters := func(n int) string {
		return strings.Map(func(rune) rune { return 'a' + w.Int32N(26) }, strings.Repeat(" ", n))
	}
	base, long := letters(8+w.IntN(80)), letters(w.IntN(2000))
	at := w.IntN(len(base) - 7)
	switch w.IntN(7) {
	case 0: // the same length, and another byte or four in one place
		return func(i int) string { return base[:at] + fmt.Sprintf("%04d", i) + base[at+4:] }
	case 1: // the same letters in another order
		return func(int) string {
			turn := w.IntN(len(base))
			return base[turn:] + base[:turn]
		}
	case 2: // one letter, in every length
		return func(i int) string { return strings.Repeat(base[:1], i%130) }
	case 3: // words of any language, and characters that must be escaped
		return func(i int) string {
			text := w.pick("", "CN", "a,b]", `"`, `\`, "ü", "😀", "\u2028", "<&>", "\n", "\x7f", "/a/b", "null", "true", "\ufffd", "日本語", "\\u0041", "]]]]")
			return text + w.pick("", strconv.Itoa(i)+text)
		}
	case 4: // long ones
		return func(i int) string { return long[:len(long)/3] + strconv.Itoa(i) + long[len(long)/3:] }
	case 5: // now and then one that is longer than the buffer of the rows
		return func(i int) string {
			if i%400 == 7 {
				return strings.Repeat(letters(10), 8000)
			}
			return letters(w.IntN(20))
		}
	default: // ids
		return func(i int) string { return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(i)*2654435761, i&0xffff, i) }
	}
}

// spelled writes a text in quotes, with some characters as escapes that need not be.
func (w *scanWriter) spelled(text string) string {
	quoted, _ := json.Marshal(text)
	if w.oneIn(2) {
		return string(quoted)
	}
	out := []byte{'"'}
	for _, r := range text {
		switch one, _ := json.Marshal(string(r)); {
		case !w.oneIn(4):
			out = append(out, one[1:len(one)-1]...)
		case r == '/':
			out = append(out, `\/`...)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, w.pick(`\u%04x`, `\u%04X`), unit)
			}
		}
	}
	return string(append(out, '"'))
}

// nearMiss returns a value that hardly fits where another does, or does not: a number at the edge of a type, or the text
// that fits with another byte.
func (w *scanWriter) nearMiss(cell string) string {
	if text := []byte(cell); len(text) > 2 && text[0] == '"' && !w.oneIn(3) {
		text[1+w.IntN(len(text)-2)] = "0123456789:.-TZx/%,+a"[w.IntN(21)]
		if json.Valid(text) {
			return string(text)
		}
	}
	edge := new(big.Int).Lsh(big.NewInt(1), []uint{7, 8, 15, 16, 31, 32, 63, 64}[w.IntN(8)])
	edge.Sub(edge, big.NewInt(int64(w.IntN(3)-1)))
	return w.pick("null", "null", "true", "1.5", "1e3", "-1", "-0", "1e400", "3.5e38", edge.String(), "-"+edge.String(), w.quotedNow(edge.String()),
		`"+5"`, `"05"`, `" 5"`, `"5 "`, `"-"`, `".5"`, `"0x5"`, `"1_0"`, `"nan"`, `"1e"`, `"null"`, `"2026-02-29T08:30:00"`, `"::1%"`)
}
