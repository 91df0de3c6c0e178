package rowjson

import (
	"encoding/binary"
	"net/netip"
)

// ipv4At parses the JSON string at text[i] as an IPv4 address in dotted decimal form without leading zeros. It returns
// the index after the string, or 0 if it is another value.
func ipv4At(text []byte, i int) (addr netip.Addr, end int) {
	if i >= len(text) || text[i] != '"' {
		return addr, 0
	}
	var all uint32
	number, digits, dots := uint32(0), 0, 0
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c-'0' <= 9:
			number = number*10 + uint32(c-'0')
			if digits++; number > 255 || digits > 1 && number < 10 {
				return addr, 0
			}
		case digits == 0:
			return addr, 0
		case c == '.' && dots < 3:
			all = all<<8 | number
			number, digits = 0, 0
			dots++
		case c == '"' && dots == 3:
			var bytes [4]byte
			binary.BigEndian.PutUint32(bytes[:], all<<8|number)
			return netip.AddrFrom4(bytes), i + 1
		default:
			return addr, 0
		}
	}
	return addr, 0
}

// ipv6At parses the JSON string at text[i] as an IPv6 address without a zone or an embedded IPv4 address. It returns
// the index after the string, or 0 if it is another value.
func ipv6At(text []byte, i int) (addr netip.Addr, end int) {
	if len(text)-i < len(`"::"`) || text[i] != '"' {
		return addr, 0
	}
	var bytes [16]byte
	at, zeros := 0, -1 // number of bytes, and position of the two colons
	if i++; text[i] == ':' && text[i+1] == ':' {
		i, zeros = i+2, 0
	}
	for i < len(text) && text[i] != '"' {
		group, n := hexGroup(text[i:])
		if i += n; n == 0 || at == len(bytes) || i == len(text) {
			return addr, 0
		}
		binary.BigEndian.PutUint16(bytes[at:], group)
		at += 2
		switch {
		case text[i] == '"':
			continue
		case text[i] != ':' || i+1 == len(text) || text[i+1] == '"':
			return addr, 0
		case text[i+1] == ':' && zeros < 0:
			i, zeros = i+1, at
		}
		i++
	}
	if i >= len(text) || (zeros < 0) != (at == len(bytes)) {
		return addr, 0
	}
	if zeros >= 0 {
		behind := len(bytes) - (at - zeros)
		copy(bytes[behind:], bytes[zeros:at])
		clear(bytes[zeros:behind])
	}
	return netip.AddrFrom16(bytes), i + 1
}

// hexGroup parses up to four hexadecimal digits. It returns their value and number.
func hexGroup(text []byte) (group uint16, n int) {
	for n < len(text) && n < 4 && hexDigits[text[n]] > 0 {
		group = group<<4 | uint16(hexDigits[text[n]]-1)
		n++
	}
	return group, n
}
