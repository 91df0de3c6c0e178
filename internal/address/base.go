package address

import (
	"cmp"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Base is the root of all requests: {base_url}/<customer_name>/v1. It is immutable and safe for concurrent use.
type Base struct {
	origin   url.URL // scheme and host, in lower case, without a default port
	path     string  // escaped, for example /root/acme/v1
	customer string
}

// Parse parses a base URL and appends the customer to its path as one escaped element. The scheme must be https; http
// is allowed for loopback hosts, and for every host if plainHTTP is true. A base URL that already ends in the customer
// or in /v1 is invalid. The error is an *Error, and shows no part of the base URL.
func Parse(baseURL, customer string, plainHTTP bool) (*Base, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		// The parser's own error quotes the URL, which may contain a password.
		return nil, invalidBase("not a URL; write https://, as in https://api.example.com")
	}
	if err := checkParts(baseURL, u); err != nil {
		return nil, err
	}
	origin := originOf(u)
	switch {
	case !validHost(origin.Host):
		return nil, invalidBase("the host is not a valid host name; write other letters than a to z in punycode (xn--...)")
	case origin.Scheme == "https":
	case origin.Scheme != "http":
		return nil, invalidBase("the scheme is not https")
	case !plainHTTP && !isLoopback(u.Hostname()):
		return nil, invalidBase("http is only allowed for loopback hosts; use https or WithPlainHTTP")
	}
	if err := checkCustomer(customer); err != nil {
		return nil, err
	}
	segment, err := escapeSegment("customer", customer)
	if err != nil {
		return nil, err
	}
	root := strings.TrimRight(u.EscapedPath(), "/")
	if root != "" {
		if root, err = Clean("base URL", root); err != nil {
			return nil, invalidBase("the path has an empty element, a dot element, a backslash, a control character or a bad escape; remove it. " +
				"The client appends /<customer>/v1 itself, for example to https://api.example.com")
		}
	}
	const leaveOut = "but the client appends /<customer>/v1 itself; leave that out, as in https://api.example.com"
	plain, _ := url.PathUnescape(root) // an escaped slash counts, because a proxy may treat it as a slash
	switch last := path.Base(plain); {
	case strings.EqualFold(last, "v1"):
		return nil, invalidBase("the path ends in /v1, " + leaveOut)
	case strings.EqualFold(last, customer):
		return nil, invalidBase("the path ends in the name of the customer, " + leaveOut)
	}
	return &Base{origin: origin, path: root + "/" + segment + "/v1", customer: customer}, nil
}

// checkCustomer refuses a name that is not one path element, or that contains invisible characters.
func checkCustomer(customer string) error {
	const alone = "write the name of the customer alone, such as acme"
	at := strings.IndexFunc(customer, IsInvisible)
	switch {
	case customer == "":
		return invalid("customer", "is empty; %s", alone)
	case strings.ContainsAny(customer, `/\`):
		return invalid("customer", "contains a slash or a backslash; %s. Put any path prefix in the base URL", alone)
	case strings.TrimSpace(customer) != customer:
		return invalid("customer", "begins or ends with a space; %s", alone)
	case !utf8.ValidString(customer):
		return invalid("customer", "is not UTF-8; %s", alone)
	case at >= 0:
		r, _ := utf8.DecodeRuneInString(customer[at:])
		return invalid("customer", "contains the invisible character %U at byte %d; %s", r, at, alone)
	default:
		return nil
	}
}

// checkParts refuses a base URL with forbidden parts or without required ones.
func checkParts(baseURL string, u *url.URL) error {
	switch {
	case u.Hostname() == "":
		return invalidBase("needs a scheme and a host; write https://, as in https://api.example.com")
	case u.User != nil:
		return invalidBase("must not contain user information")
	case u.RawQuery != "" || u.ForceQuery:
		return invalidBase("must not contain a query")
	case u.Fragment != "" || strings.Contains(baseURL, "#"):
		return invalidBase("must not contain a fragment")
	}
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil || port == 0 {
		return invalidBase("the port is not between 1 and 65535")
	}
	return nil
}

// invalidBase takes no format arguments, so that no part of the base URL can get into the reason.
func invalidBase(reason string) *Error { return &Error{Field: "base URL", Reason: reason} }

// URL returns the URL of a request. path is relative to the base and already escaped; it is sent unchanged. URL returns
// the error of [url.PathUnescape] if path has an invalid escape.
func (b *Base) URL(path, query string) (url.URL, error) {
	escaped := b.path + path
	plain, err := url.PathUnescape(escaped)
	return url.URL{Scheme: b.origin.Scheme, Host: b.origin.Host, Path: plain, RawPath: escaped, RawQuery: query}, err
}

// Host returns the host and port of the base for errors, without the default port of the scheme.
func (b *Base) Host() string { return b.origin.Host }

// String returns the base as a URL.
func (b *Base) String() string { return b.origin.String() + b.path }

// Path returns the full escaped path of an address below the base, for errors and log records.
func (b *Base) Path(below string) string { return b.path + below }

// Customer returns the name of the customer.
func (b *Base) Customer() string { return b.customer }

// Key identifies the purge limit of this base, because the service counts per customer. Hosts that differ only in a
// trailing dot are different origins but share a key, since two limits for one host would allow too many purges.
func (b *Base) Key() string {
	host, port := strings.TrimSuffix(b.origin.Hostname(), "."), b.origin.Port()
	if addr, err := netip.ParseAddr(host); err == nil {
		host = strings.ToLower(addr.Unmap().String())
	}
	return b.origin.Scheme + "://" + joinHostPort(host, port) + "\n" + b.customer
}

// Resolve parses an address from the service or a user, and returns its path and query relative to the base. The
// address may be relative to the base (open point 29), a path that begins with the path of the base, or an absolute URL
// of the same origin below that path. For all others Resolve returns an *Error, which may quote the address.
//
// [url.URL.Parse] is unsuitable: it would drop the path of the base, or follow the address to another origin.
func (b *Base) Resolve(field, address string) (path, query string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", invalid(field, "not an address")
	}
	absolute := u.Scheme != "" || u.Host != ""
	switch {
	case u.Opaque != "" || u.User != nil || u.Fragment != "":
		return "", "", invalid(field, "must consist of a path and a query only")
	case absolute && originOf(u) != b.origin:
		return "", "", invalid(field, "leads to another origin, %s", &url.URL{Scheme: u.Scheme, Host: u.Host})
	}
	if path, err = Clean(field, u.EscapedPath()); err != nil {
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

// OriginOf returns the origin of a Location header for errors, because the rest may contain secrets.
func (b *Base) OriginOf(location string) string {
	u, err := b.origin.Parse(location)
	if err != nil {
		return "an unreadable address"
	}
	origin := originOf(u)
	return origin.String()
}
