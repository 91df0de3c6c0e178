package webdelivery

import (
	"net/netip"
	"time"
)

// The kinds of values that most rows have are read here without making a string of each. Whatever is not in the
// plain form is left to the packages time, strconv and net/netip, so that they alone say what is valid beyond it.

// plainTimestamp reads yyyy-MM-ddTHH:mm:ss, with a fraction of up to nine digits or none, in UTC. Most timestamps have
// the date of the one before.
func plainTimestamp(text []byte, known *date) (time.Time, bool) {
	const form = "yyyy-MM-ddTHH:mm:ss"
	if len(text) < len(form) || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' {
		return time.Time{}, false
	}
	if day := [10]byte(text); day != known.text && !known.read(day) {
		return time.Time{}, false
	}
	var d digits
	hour, minute, second := d.two(text, 11), d.two(text, 14), d.two(text, 17)
	nanos := 0
	if fraction := text[len(form):]; len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) == 1 || len(fraction) > 10 {
			return time.Time{}, false
		}
		for i := 1; i < len(fraction); i++ {
			nanos = nanos*10 + d.one(fraction, i)
		}
		nanos *= [...]int{1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 10, 1}[len(fraction)-2]
	}
	if d.wrong() || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	return time.Unix(int64(known.days*24+hour)*3600+int64(minute*60+second), int64(nanos)).UTC(), true
}

// date is a date that has been read: yyyy-MM-dd, whose dashes were looked at before.
type date struct {
	text [10]byte
	days int // from 1970
}

func (k *date) read(text [10]byte) bool {
	var d digits
	year := d.two(text[:], 0)*100 + d.two(text[:], 2)
	month, day := d.two(text[:], 5), d.two(text[:], 8)
	if d.wrong() || month < 1 || month > 12 || day < 1 || day > daysOf(month, year) {
		return false
	}
	*k = date{text, daysBefore(year, month) + day - 1}
	return true
}

// digits reads digits and remembers whether all were.
type digits uint

func (d *digits) one(text []byte, i int) int {
	digit := uint(text[i]) - '0'
	*d |= digits(digit | (9 - digit)) // has its highest bit set when digit is below 0 or above 9
	return int(digit)                 // of no meaning when it is no digit
}

func (d *digits) two(text []byte, i int) int { return d.one(text, i)*10 + d.one(text, i+1) }

func (d *digits) wrong() bool { return int(*d) < 0 } // the highest bit

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysOf(month, year int) int {
	if month == 2 && !leap(year) {
		return 28
	}
	return [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// daysBefore counts the days from 1970 up to the first of a month in the years 0 to 9999.
func daysBefore(year, month int) int {
	const to1970 = 719528 // from the first of January of the year 0
	days := year*365 + (year+3)/4 - (year+99)/100 + (year+399)/400 - to1970
	days += [...]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}[month-1]
	if month > 2 && leap(year) {
		days++
	}
	return days
}

// plainInt reads a whole number of up to 18 digits.
func plainInt(text []byte) (int64, bool) {
	unsigned := text
	if len(text) > 0 && text[0] == '-' {
		unsigned = text[1:]
	}
	if len(unsigned) == 0 || len(unsigned) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range unsigned {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(unsigned) < len(text) {
		n = -n
	}
	return n, true
}

// plainIPv4 reads four numbers with dots between.
func plainIPv4(text []byte) (netip.Addr, bool) {
	const longest = len("255.255.255.255")
	var padded [longest + 1]byte // ends with what is no digit, so that there is no end to look for
	if copy(padded[:], text) > longest {
		return netip.Addr{}, false
	}
	var bytes [4]byte
	i := 0
	for at := range bytes {
		if at > 0 {
			if padded[i] != '.' {
				return netip.Addr{}, false
			}
			i++
		}
		value := padded[i] - '0'
		if value > 9 {
			return netip.Addr{}, false
		}
		i++
		if digit := padded[i] - '0'; digit <= 9 && value > 0 {
			value = value*10 + digit
			i++
			if digit := padded[i] - '0'; digit <= 9 {
				if value > 25 || value == 25 && digit > 5 {
					return netip.Addr{}, false
				}
				value = value*10 + digit
				i++
			}
		}
		bytes[at] = value
	}
	return netip.AddrFrom4(bytes), i == len(text)
}
