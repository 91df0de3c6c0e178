package suite_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pool returns values for a column. Every field of its types can take them, unless there are no such values.
func (w *scanWriter) pool(types []reflect.Type, n int) []scanCell {
	if len(types) == 0 {
		types = []reflect.Type{valueType}
	}
	next := make([]func(i int) scanCell, len(types))
	for i, t := range types {
		next[i] = w.valuesOf(elemOf(t))
	}
	fits := func(cell scanCell) bool {
		for _, t := range types {
			if _, ok := wantedIn(t, cell.plain(), cell.text); !ok {
				return false
			}
		}
		return true
	}
	pool := make([]scanCell, n)
	for i := range pool {
		for tries := 0; tries == 0 || tries < 100 && !fits(pool[i]); tries++ {
			pool[i] = next[w.IntN(len(next))](i + tries)
		}
	}
	return pool
}

// valuesOf returns a function that returns values of a type, mostly another one for another i.
func (w *scanWriter) valuesOf(t reflect.Type) func(i int) scanCell {
	switch t {
	case timeType:
		return w.times()
	case addrType:
		return inQuotes(w.addrs())
	case prefixType:
		addrs := w.addrs()
		return inQuotes(func(i int) string { return addrs(i) + "/" + strconv.Itoa(w.IntN(129)) })
	case portType:
		addrs := w.addrs()
		return inQuotes(func(i int) string {
			addr := addrs(i)
			if strings.Contains(addr, ":") {
				addr = "[" + addr + "]"
			}
			return addr + ":" + strconv.Itoa(w.IntN(65536))
		})
	case numberType:
		return w.decimals()
	case valueType:
		return w.anything()
	case reflect.TypeFor[big.Int]():
		return func(int) scanCell {
			n := new(big.Int).Lsh(big.NewInt(w.Int64()), uint(w.IntN(100)))
			return scanCell{n.String(), w.oneIn(2)}
		}
	case reflect.TypeFor[ownHex]():
		return inQuotes(func(int) string { return strconv.FormatUint(uint64(w.Uint32()>>w.IntN(32)), 16) })
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(int) scanCell { return scanCell{w.pick("true", "false"), true} }
	case reflect.Float32, reflect.Float64:
		return w.decimals()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return w.integers(t.Bits(), false)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return w.integers(t.Bits(), true)
	default:
		return w.texts()
	}
}

func inQuotes(text func(i int) string) func(i int) scanCell {
	return func(i int) scanCell { return scanCell{text(i), false} }
}

// anything mixes all kinds of values.
func (w *scanWriter) anything() func(i int) scanCell {
	kinds := []func(i int) scanCell{w.texts(), w.texts(), w.times(), w.decimals(), w.integers(64, true), w.valuesOf(reflect.TypeFor[bool]())}
	if w.oneIn(2) {
		kinds = kinds[w.IntN(len(kinds)):][:1]
	}
	return func(i int) scanCell { return kinds[w.IntN(len(kinds))](i) }
}

// integers returns whole numbers: the least and the greatest of their type and those beside them, and others of any
// length.
func (w *scanWriter) integers(bits int, signed bool) func(i int) scanCell {
	most := ^uint64(0) >> (64 - bits)
	if signed {
		most >>= 1
	}
	base := w.Uint64() >> w.IntN(64)
	return func(i int) scanCell {
		var n uint64
		switch w.IntN(4) {
		case 0:
			n = most - uint64(w.IntN(3))
		case 1:
			n = w.Uint64() >> w.IntN(64)
		case 2:
			n = uint64(w.IntN(12))
		default:
			n = base + uint64(i)
		}
		n &= most
		text := strconv.FormatUint(n, 10)
		if signed && w.oneIn(2) {
			text = "-" + text
			if n == most {
				text = "-" + strconv.FormatUint(n+1, 10)
			}
		}
		return scanCell{text, true}
	}
}

// decimals returns numbers of every form of JSON.
func (w *scanWriter) decimals() func(i int) scanCell {
	return func(i int) scanCell {
		switch w.IntN(6) {
		case 0:
			return scanCell{w.pick("0", "-0", "-0.0", "0e5", "1E+2", "1e-7", "-2.5e-3", "16777217", "9007199254740993", "1.7976931348623157e308", "5e-324", "1e-400",
				"2.2250738585072014e-308", "3.4028234663852886e38", "1.401298464324817e-45", "0.1000000000000000055511151231257827", "100000000000000000000000"), true}
		case 1:
			return scanCell{strconv.FormatFloat(w.NormFloat64(), 'e', w.IntN(20), 64), true}
		case 2:
			return scanCell{strconv.FormatFloat(w.NormFloat64()*1e6, 'f', w.IntN(20), 64), true}
		case 3:
			return scanCell{fmt.Sprintf("%d.%d", i, w.IntN(100)), true}
		case 4:
			return scanCell{fmt.Sprintf("%d%s%d", w.IntN(100), w.pick("e", "E", "e+", "E-"), w.IntN(30)), true}
		default:
			return scanCell{strconv.Itoa(w.IntN(1000) - 300), true}
		}
	}
}

// times returns timestamps near each other or far, in one layout or in many. One that differs from another in one
// place only differs in the year, the month, the day, the time of day or the fraction.
func (w *scanWriter) times() func(i int) scanCell {
	layouts := []string{
		"2006-01-02T15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05",
		"2006-01-02 15:04:05Z07:00", "2006-01-02", "2006-01-02T15:04:05.000", "2006-01-02T15:04:05.000000000", "2006-01-02T15:04:05.0Z07:00",
		"2006-01-02 15:04:05.000000", "2006-01-02T15:04:05.00", "2006-01-02T15:04:05.0000", "2006-01-02T15:04:05.00000", "2006-01-02T15:04:05.0000000",
		"2006-01-02T15:04:05.00000000Z07:00", "2006-01-02T15:04:05.000000Z",
	}
	if w.oneIn(2) {
		w.Shuffle(len(layouts), func(i, j int) { layouts[i], layouts[j] = layouts[j], layouts[i] })
		layouts = layouts[:1+w.IntN(2)]
	}
	base := time.Date(1990+w.IntN(60), time.Month(1+w.IntN(12)), 1+w.IntN(28), w.IntN(24), w.IntN(60), w.IntN(60), w.IntN(1e9), time.UTC)
	step := w.IntN(7)
	return func(i int) scanCell {
		at, way := base, step
		if way == 0 {
			way = 1 + w.IntN(6)
		}
		switch way {
		case 1:
			at = at.AddDate(i%4000, 0, 0)
		case 2:
			at = at.AddDate(0, i, 0)
		case 3:
			at = at.AddDate(0, 0, i)
		case 4:
			at = at.Add(time.Duration(i) * time.Second)
		case 5:
			at = at.Add(time.Duration(i) * time.Nanosecond)
		default:
			at = time.Date(w.IntN(10000), time.Month(1+w.IntN(12)), 1+w.IntN(31), w.IntN(24), w.IntN(60), w.IntN(60), w.IntN(1e9), time.UTC)
		}
		layout := layouts[w.IntN(len(layouts))]
		if strings.Contains(layout, "07") {
			at = at.In(time.FixedZone("", 60*15*(w.IntN(112)-56)))
		}
		return scanCell{at.Format(layout), false}
	}
}

// addrs returns addresses near each other or far, in one spelling or in many.
func (w *scanWriter) addrs() func(i int) string {
	var base [16]byte
	for i := range base {
		base[i] = byte(w.Uint32())
	}
	base[0] = 0x20
	kinds, at := w.IntN(3), w.IntN(16)
	return func(i int) string {
		bytes := base
		bytes[at] += byte(i)
		bytes[(at+1)%16] += byte(i >> 8)
		if w.oneIn(10) {
			clear(bytes[w.IntN(16):])
		}
		v4 := netip.AddrFrom4([4]byte(bytes[at&12:]))
		if w.oneIn(10) {
			v4 = netip.AddrFrom4([4]byte{byte(w.IntN(256)), byte(w.IntN(256)), byte(w.IntN(12)), byte(w.IntN(256))})
		}
		if kinds == 0 || kinds == 1 && w.oneIn(2) {
			return v4.String()
		}
		v6 := netip.AddrFrom16(bytes)
		switch w.IntN(7) {
		case 0:
			return v6.StringExpanded()
		case 1:
			return strings.ToUpper(v6.String())
		case 2:
			return "::ffff:" + v4.String()
		case 3:
			return v6.String() + "%" + w.pick("eth0", "eth1", "1", "a%b", "Zürich", strings.Repeat("z", 70))
		default:
			return v6.String()
		}
	}
}

// texts returns texts of one family. Many families have texts that a careless comparison or hash takes for equal.
func (w *scanWriter) texts() func(i int) scanCell {
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + w.IntN(26))
		}
		return string(b)
	}
	digits := w.pick("0123456789", "0123456789abcdef", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
	switch w.IntN(9) {
	case 0: // the same length; another byte in one place, or four
		base := letters(4 + w.IntN(80))
		at := []int{0, len(base) - 4, (len(base) - 4) / 2, w.IntN(len(base) - 3)}[w.IntN(4)]
		return inQuotes(func(i int) string { return base[:at] + inDigits(i, 4, digits) + base[at+4:] })
	case 1: // the same first and last eight bytes, and the same length
		head, tail := letters(8), letters(8)
		middle := letters(w.IntN(30))
		return inQuotes(func(i int) string { return head + middle + inDigits(i, 4, digits) + tail })
	case 2: // the same words of one to eight bytes in another order
		words := make([]string, 3+w.IntN(6))
		size := []int{1, 2, 4, 8}[w.IntN(4)]
		for i := range words {
			words[i] = letters(size)
		}
		return inQuotes(func(int) string {
			w.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
			return strings.Join(words, "")
		})
	case 3: // one letter, in every length
		letter := w.pick("a", "0", " ", "\x00", "ü")
		return inQuotes(func(i int) string { return strings.Repeat(letter, i%130) })
	case 4: // words of any language, and characters that must be escaped
		return inQuotes(func(i int) string {
			text := w.pick("", "CN", "a,b]", `"`, `\`, "ü", "😀", "\u2028", "<&>", "\n", "\x7f", "/a/b", "null", "true", "\ufffd", "日本語", "\\u0041")
			if w.oneIn(2) {
				text += strconv.Itoa(i) + text
			}
			return text
		})
	case 5: // long ones
		long := letters(w.IntN(2000))
		if w.oneIn(4) {
			long += "é😀" + long
		}
		return inQuotes(func(i int) string { return long[:len(long)/3] + strconv.Itoa(i) + long[len(long)/3:] })
	case 6: // now and then one that is longer than the buffer of the rows
		return inQuotes(func(i int) string {
			if i%400 == 7 {
				return strings.Repeat(letters(10), 3000+w.IntN(5000))
			}
			return letters(w.IntN(20))
		})
	case 7: // values without quotes, and texts that are not UTF-8
		return func(i int) scanCell {
			if w.oneIn(3) {
				return scanCell{w.pick("\"a\xff\"", "\"\xe2\x98\"", `"\ud800\u0041"`, `"\udc00\ud83d\ude00"`, "true", "false", "1.50", "-0"), true}
			}
			return scanCell{strconv.Itoa(i), w.oneIn(2)}
		}
	default: // ids
		return inQuotes(func(i int) string { return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(i)*2654435761, i&0xffff, i) })
	}
}

// inDigits writes a number in digits of any kind, the last one first, so that texts of few numbers differ in one byte.
func inDigits(n, width int, digits string) string {
	text := make([]byte, width)
	for i := range text {
		text[i] = digits[n%len(digits)]
		n /= len(digits)
	}
	return string(text)
}

// nearMiss returns a value for a column that hardly fits it, or does not.
func (w *scanWriter) nearMiss(c *scanColumn) string {
	t := valueType
	if len(c.types) > 0 {
		t = elemOf(c.types[w.IntN(len(c.types))])
	}
	cell := c.pools[0][w.IntN(len(c.pools[0]))]
	switch {
	case t == timeType && w.oneIn(2):
		return w.quoted(w.pick("2026-02-29T08:30:00", "2024-02-29T08:30:00", "1900-02-29T08:30:00", "2026-13-01T08:30:00", "2026-00-10T08:30:00", "2026-04-31T08:30:00",
			"2026-04-00T08:30:00", "2026-11-20T24:00:00", "2026-11-20T23:60:00", "2026-11-20T23:59:60", "2026-11-20T08:30:00.", "2026-11-20T08:30:00.1234567891",
			"2026-11-20T08:30:00,5", "2026-11-20T08:30", "2026-1-20T08:30:00", "2026-11-20T8:30:00", "2026-11-20t08:30:00", "2026-11-20T08:30:00z",
			"2026-11-20T08:30:00+24:00", "2026-11-20T08:30:00 Z", "12026-11-20T08:30:00", "0000-01-01T00:00:00", "2026-11-20T08:30:00.12345678x", "2026/11/20",
			"2026-11-20T08:3a:00", "2026-11-20T08:30:0/"), c.escapes)
	case (t == addrType || t == prefixType || t == portType) && w.oneIn(2):
		return w.quoted(w.pick("256.1.1.1", "1.2.3.256", "1.2.3.259", "1.2.255.255", "01.2.3.4", "1.2.3.04", "1.00.3.4", "1.2.3", "1.2.3.4.5", "1.2.3.4 ", "1.2.3.", ".1.2.3",
			"1..2.3", "1.2.3.1000", "1.2.3.4%eth0", "::g", "1::2::3", "12345::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "fe80::1%", "fe80::1%x", "::ffff:1.2.3.256",
			"[::1]", "1.2.3.4/32", "1.2.3.4/33", "1.2.3.4/032", "::/128", "::/129", "1.2.3.4:65535", "1.2.3.4:65536", "[::1]:0", "::1:1", "0.0.0.0", "1,2.3.4"), c.escapes)
	case cell.bare || cell.text == "" || t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && w.oneIn(2):
		number := w.pick("1.5", "1e3", "-1", "-0", "1e400", "-1e39", "3.5e38", "true", "+5", "05", " 5", "5 ", "-", ".5", "5.", "0x5", "1_0", "nan", "1e", "9999999999999999999")
		if w.oneIn(2) { // beside the least or the greatest number of a type
			edge := new(big.Int).Lsh(big.NewInt(1), []uint{7, 8, 15, 16, 31, 32, 63, 64}[w.IntN(8)])
			edge.Sub(edge, big.NewInt(int64(w.IntN(3)-1)))
			number = w.pick("", "-") + edge.String()
		}
		if numberForm.MatchString(number) && w.oneIn(2) {
			return number
		}
		return w.quoted(number, c.escapes)
	default: // the bytes of a text that fits, except one
		text := []byte(strings.ToValidUTF8(cell.text, "?"))
		at := w.IntN(len(text))
		other := "0123456789012345678901234567890:.- TZx/%,+\"a"[w.IntN(44)]
		switch w.IntN(3) {
		case 0:
			text = slices.Insert(text, at, other)
		case 1:
			text = slices.Delete(text, at, at+min(1, len(text)-1))
		default:
			text[at] = other
		}
		return w.quoted(strings.ToValidUTF8(string(text), "?"), c.escapes)
	}
}
