package testserver

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
)

// Types of a network list (service-interface section 2.6).
const (
	typeIP  = "IP"
	typeGEO = "GEO"
)

// maxUpdate is how many entries one request may bring (service-interface section 8).
const maxUpdate = 5_000

// entryValue is what an entry stands for.
type entryValue struct {
	text string // as it was given when it was first added
	key  string // the same for all texts that mean the same
}

// readEntries reads the body of POST entries: an array of objects with one member (service-interface section 4.6). Of
// values that are the same the first is returned.
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

// values makes distinct values of texts without checking them.
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

// canonical checks an entry by the rules of service-interface section 2.6 and returns what it is compared by.
func canonical(kind, text string) (string, error) {
	if kind == typeGEO {
		return countryCode(text)
	}
	return addressRange(text)
}

// countryCode takes any two capital letters: which of them ISO 3166-1 has assigned changes over time, and the standard
// library has no list.
func countryCode(text string) (string, error) {
	if !twoCapitals.MatchString(text) {
		return "", fmt.Errorf("%q is not an ISO 3166-1 two-letter country code", text)
	}
	return text, nil
}

var twoCapitals = regexp.MustCompile(`^[A-Z]{2}$`)

// addressRange takes an IPv4 address, an IPv6 address or a CIDR range. What an address belongs to is decided by its bits
// alone, hence open point 27: it is the range that holds just it, host bits of a range do not matter, and IPv4 within
// ::ffff:0:0/96 is IPv4. A zone is refused: it means something on one host only.
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
