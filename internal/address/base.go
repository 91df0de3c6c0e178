package address

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/invisible"
)

// Base is the root of all requests: {base_url}/<customer_name>/v1. It is immutable and safe for concurrent use.
type Base struct {
	scheme, host string // origin, in lower case, without a default port
	path         string // escaped, for example /root/acme/v1
	customer     string
}

// Parse reads a base URL and appends the customer to its path as one escaped element. The scheme must be https; http
// is allowed for a loopback host, and for every host if plainHTTP is true. Returns *Error if the base URL or the
// customer is invalid. A base URL that already ends in the customer or in /v1 is invalid in any spelling. The error
// shows no part of the base URL.
func Parse(baseURL, customer string, plainHTTP bool) (*Base, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		// The parser's own error quotes the URL, which may hold a password.
		return nil, invalidBase("not a URL")
	}
	if err := checkParts(baseURL, u); err != nil {
		return nil, err
	}
	origin := originOf(u)
	switch {
	case !validHost(origin.Host):
		return nil, invalidBase("the host is not a valid host name")
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
	switch last := lastElement(root); {
	case last == "":
	case sameName(last, "v1"):
		return nil, invalidBase("the path ends in /v1, " + leaveOut)
	case sameName(last, customer):
		return nil, invalidBase("the path ends in the name of the customer, " + leaveOut)
	}
	return &Base{scheme: origin.Scheme, host: origin.Host, path: root + "/" + segment + "/v1", customer: customer}, nil
}

// leaveOut says what to write instead of a base URL that is too long. It shows no part of the base URL.
const leaveOut = "but the client appends /<customer>/v1 itself; leave that out, as in https://api.example.com"

// lastElement returns the last visible element of a path that [Clean] has accepted. A proxy may take an escaped slash
// for a slash, so it separates elements, too.
func lastElement(path string) string {
	plain, _ := url.PathUnescape(path) // a path from Clean has no bad escape
	for _, element := range slices.Backward(strings.Split(plain, "/")) {
		if name := plainName(element); name != "" {
			return name
		}
	}
	return ""
}

// sameName reports whether two names differ only in their spelling: in letter case and in what plainName removes.
func sameName(a, b string) bool { return strings.EqualFold(plainName(a), plainName(b)) }

// plainName returns a name without invisible characters, blanks around it and dots after it.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r != ' ' && invisible.Is(r) {
			return -1
		}
		return r
	}, name)
	return strings.TrimLeft(strings.TrimRight(name, " ."), " ")
}

// checkCustomer refuses a name that is not one path element or has invisible characters. It allows a blank within a
// name, and joiners and variation selectors that invisible.Index allows.
func checkCustomer(customer string) error {
	const alone = "write the name of the customer alone, such as acme"
	at := invisible.Index(strings.ReplaceAll(customer, " ", "_"))
	switch {
	case customer == "":
		return invalid("customer", "is empty; %s", alone)
	case customer == ".", customer == "..":
		return invalid("customer", "%q would change the path; %s", customer, alone)
	case strings.ContainsAny(customer, `/\`):
		return invalid("customer", "holds a slash or a backslash; %s. A path before it belongs into the base URL", alone)
	case strings.TrimSpace(customer) != customer:
		return invalid("customer", "begins or ends with a blank; %s", alone)
	case at >= 0:
		r, _ := utf8.DecodeRuneInString(customer[at:])
		return invalid("customer", "holds %s at byte %d; %s", invisible.Name(r), at, alone)
	case !utf8.ValidString(customer):
		return invalid("customer", "is not UTF-8; %s", alone)
	default:
		return nil
	}
}

// checkParts refuses a base URL that has forbidden parts or lacks required ones.
func checkParts(baseURL string, u *url.URL) error {
	switch {
	case u.Hostname() == "":
		return invalidBase("needs a scheme and a host, as in https://api.example.com")
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

// invalidBase takes no arguments for the reason, so that no part of the base URL can get into it.
func invalidBase(reason string) *Error { return &Error{Field: "base URL", Reason: reason} }

// URL returns the address of a request. path is relative to the base and already escaped; it is sent unchanged.
// Returns the error of [url.PathUnescape] if path has a bad escape.
func (b *Base) URL(path, query string) (url.URL, error) {
	escaped := b.path + path
	plain, err := url.PathUnescape(escaped)
	return url.URL{Scheme: b.scheme, Host: b.host, Path: plain, RawPath: escaped, RawQuery: query}, err
}

// Host returns host and port of the base, without the default port of the scheme. Errors show it.
func (b *Base) Host() string { return b.host }

// String returns the base as a URL.
func (b *Base) String() string { return b.scheme + "://" + b.host + b.path }

// Path returns the whole escaped path of an address below the base. Errors and log records show it.
func (b *Base) Path(below string) string { return b.path + below }

// Key identifies the purge budget of this base, because the service counts per customer. Hosts that differ only in a
// dot at the end are different origins but share a key. If they are the same host, two budgets would send too many
// purges.
func (b *Base) Key() string {
	u := url.URL{Host: b.host}
	host, port := strings.TrimSuffix(u.Hostname(), "."), u.Port()
	if addr, err := netip.ParseAddr(host); err == nil {
		host = strings.ToLower(addr.Unmap().String())
	}
	return b.scheme + "://" + joinHostPort(host, port) + "\n" + b.customer
}
