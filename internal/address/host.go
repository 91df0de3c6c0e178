package address

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A host can be spelled in many ways: letter case, a trailing dot, IDN, the forms of an IPv6 address, leading zeros of
// a port. This file brings it into canonical form, so that origins can be compared and clients of one service share its
// purge limit.

// originOf returns the scheme and host in canonical form, without the scheme's default port.
func originOf(u *url.URL) url.URL {
	scheme, host, port := strings.ToLower(u.Scheme), hostOf(u.Hostname()), u.Port()
	if number, err := strconv.ParseUint(port, 10, 16); err == nil {
		port = strconv.FormatUint(number, 10)
	}
	if port == "443" && scheme == "https" || port == "80" && scheme == "http" {
		port = ""
	}
	return url.URL{Scheme: scheme, Host: joinHostPort(host, port)}
}

func joinHostPort(host, port string) string {
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// hostOf returns the canonical form of a host name without a port. The zone of an IPv6 address keeps its letter case,
// because it names a network interface. A trailing dot stays, because it changes how DNS resolves the name.
func hostOf(name string) string {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String()
	}
	return strings.ToLower(name)
}

// validHost reports whether a host in canonical form is an IP address or a valid host name. A name of only invisible
// characters is empty in that form.
func validHost(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return strings.Trim(name, ".") != "" && strings.IndexFunc(name, func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	}) < 0
}

func isLoopback(host string) bool {
	if hostOf(host) == "localhost" { // not with a trailing dot, which net/http would send to a proxy
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
