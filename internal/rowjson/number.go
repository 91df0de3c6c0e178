package rowjson

// isNumber reports whether a text is a JSON number. strconv accepts more, such as a plus sign, leading zeros, "nan" and
// hexadecimal digits.
func isNumber(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	whole := digitsOf(text)
	if whole == 0 || whole > 1 && text[0] == '0' {
		return false
	}
	text = text[whole:]
	if len(text) > 0 && text[0] == '.' {
		n := digitsOf(text[1:])
		if n == 0 {
			return false
		}
		text = text[1+n:]
	}
	if len(text) > 0 && text[0]|0x20 == 'e' {
		text = text[1:]
		if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		n := digitsOf(text)
		return n > 0 && n == len(text)
	}
	return len(text) == 0
}

// digitsOf returns the number of digits at the beginning of a text.
func digitsOf(text []byte) (n int) {
	for n < len(text) && text[n]-'0' <= 9 {
		n++
	}
	return n
}
