package address

import (
	"cmp"
	"net/url"
	"strings"
)

// Resolve reads an address that the service sent or a user wrote, and returns its path and query relative to the base.
// Addresses are relative to the base (open point 29). Resolve also accepts a path that begins with the path of the
// base, and an absolute address of the same origin below that path. Returns *Error for all others; it may quote the
// address.
//
// [url.URL.Parse] does not fit: it would drop the path of the base, or follow the address to another origin.
func (b *Base) Resolve(field, address string) (path, query string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", invalid(field, "not an address")
	}
	absolute := u.Scheme != "" || u.Host != ""
	switch {
	case u.Opaque != "" || u.User != nil || u.Fragment != "":
		return "", "", invalid(field, "must consist of a path and a query only")
	case absolute && originOf(u) != url.URL{Scheme: b.scheme, Host: b.host}:
		return "", "", invalid(field, "leads to another origin, %s://%s", u.Scheme, u.Host)
	}
	path, err = Clean(field, u.EscapedPath())
	if err != nil {
		return "", "", err
	}
	below, prefixed := strings.CutPrefix(path, b.path+"/")
	switch {
	case prefixed:
		path = "/" + below
	case absolute:
		return "", "", invalid(field, "is not below %s", b.path)
	}
	return path, u.RawQuery, nil
}

// OriginOf returns the origin of a Location header. Errors show only the origin, because the rest may be a secret.
func (b *Base) OriginOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "an unreadable address"
	}
	if u.Host == "" {
		return b.scheme + "://" + b.host
	}
	origin := originOf(u)
	origin.Scheme = cmp.Or(origin.Scheme, b.scheme)
	return origin.String()
}
