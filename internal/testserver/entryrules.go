package testserver

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Types of a network list (service document, section 2.6).
const (
	typeIP  = "IP"
	typeGEO = "GEO"
)

// maxUpdate is the maximum number of entries per request (service document, section 8).
const maxUpdate = 5_000

// entryValue is the value of an entry.
type entryValue struct {
	text string // the text with which it was first added
	key  string // the same for all texts with the same meaning
}

// readEntries reads the body of POST entries: an array of objects with one member (service document, section 4.6). If
// values are equal, it returns the first of them.
func readEntries(body []byte, name, kind string) ([]entryValue, error) {
	items, err := readArray("the body", body)
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return nil, errors.New("the body has no entries")
	case len(items) > maxUpdate:
		return nil, fmt.Errorf("the body has %d entries, more than %d", len(items), maxUpdate)
	}
	values := make([]entryValue, len(items))
	for i, item := range items {
		if values[i], err = readEntry(item, name, kind); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return distinct(values), nil
}

func readEntry(item []byte, name, kind string) (entryValue, error) {
	members, err := readObject(item, name)
	if err != nil {
		return entryValue{}, err
	}
	text, err := readString(name, members[name])
	if err != nil {
		return entryValue{}, err
	}
	key, err := canonical(kind, text)
	return entryValue{text, key}, err
}

// values converts texts to distinct values without validating them.
func (l *networkList) values(texts []string) []entryValue {
	values := make([]entryValue, len(texts))
	for i, text := range texts {
		key, err := canonical(l.Type, text)
		if err != nil {
			key = text
		}
		values[i] = entryValue{text, key}
	}
	return distinct(values)
}

func distinct(values []entryValue) []entryValue {
	seen := make(map[string]bool, len(values))
	out := values[:0]
	for _, v := range values {
		if !seen[v.key] {
			seen[v.key] = true
			out = append(out, v)
		}
	}
	return out
}

// canonical validates an entry by section 2.6 of the service document, and returns the key for comparisons.
func canonical(kind, text string) (string, error) {
	if kind == typeGEO {
		return countryCode(text)
	}
	return addressRange(text)
}

// countries are the second letters of the codes that ISO 3166-1 assigns, by their first letter.
var countries = map[byte]string{
	'A': "DEFGILMOQRSTUWXZ", 'B': "ABDEFGHIJLMNOQRSTVWYZ", 'C': "ACDFGHIKLMNORUVWXYZ", 'D': "EJKMOZ", 'E': "CEGHRST", 'F': "IJKMOR",
	'G': "ABDEFGHILMNPQRSTUWY", 'H': "KMNRTU", 'I': "DELMNOQRST", 'J': "EMOP", 'K': "EGHIMNPRWYZ", 'L': "ABCIKRSTUVY",
	'M': "ACDEFGHKLMNOPQRSTUVWXYZ", 'N': "ACEFGILOPRUZ", 'O': "M", 'P': "AEFGHKLMNRSTWY", 'Q': "A", 'R': "EOSUW",
	'S': "ABCDEGHIJKLMNORSTVXYZ", 'T': "CDFGHJKLMNORTVWZ", 'U': "AGMSYZ", 'V': "ACEGINU", 'W': "FS", 'Y': "ET", 'Z': "AMW",
}

// countryCode accepts the codes of countries, in capital letters.
func countryCode(text string) (string, error) {
	if len(text) != 2 || strings.IndexByte(countries[text[0]], text[1]) < 0 {
		return "", fmt.Errorf("%q is not an ISO 3166-1 two-letter country code", text)
	}
	return text, nil
}

// addressRange accepts an IPv4 address, an IPv6 address or a CIDR range. Entries with the same bits mean the same (open
// point 27). An address is the range that holds only this address, host bits of a range do not matter, and IPv4 within
// ::ffff:0:0/96 is IPv4. A zone is rejected, because it has a meaning on one host only.
func addressRange(text string) (string, error) {
	prefix, err := netip.ParsePrefix(text)
	if addr, notAddr := netip.ParseAddr(text); notAddr == nil {
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		if addr.Zone() != "" {
			err = errors.New("zone")
		}
	}
	if err != nil {
		return "", fmt.Errorf("%q is neither an IPv4 address, nor an IPv6 address, nor a CIDR range", text)
	}
	if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked().String(), nil
}
