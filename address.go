package webdelivery

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Every address that a request can go to is made or checked here. Two rules hold: an id is one escaped path element,
// and an address that comes from the service never leads away from the origin that the client was made for
// (credentials go to one origin).

// base is where the service lives: {base_url}/<customer_name>/v1.
type base struct {
	scheme, host string // origin, in lower case, without a default port
	path         string // escaped, for example /root/acme/v1
	prefix       string // scheme, host and path: what every request begins with
	customer     string
}

// url is the address of a request. Its path is sent as it is, escaped.
func (b *base) url(path, query string) (url.URL, error) {
	escaped := b.path + path
	plain, err := url.PathUnescape(escaped)
	return url.URL{Scheme: b.scheme, Host: b.host, Path: plain, RawPath: escaped, RawQuery: query}, err
}

// parseBase reads the base URL: https, or http where plainHTTP or a loopback host allows it. No error repeats a part of
// it: in one that is spelled wrong, a password may stand in any of them.
func parseBase(baseURL, customer string, plainHTTP bool) (*base, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		// The parser's own error repeats the URL, and with it a password in it.
		return nil, invalid("base URL", "not a URL")
	}
	switch {
	case u.Hostname() == "":
		return nil, invalid("base URL", "needs a scheme and a host, as in https://api.example.com")
	case u.User != nil:
		return nil, invalid("base URL", "must not hold user information")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, invalid("base URL", "must not hold a query")
	case u.Fragment != "" || strings.Contains(baseURL, "#"):
		return nil, invalid("base URL", "must not hold a fragment")
	}
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil || port == 0 {
		return nil, invalid("base URL", "the port is not between 1 and 65535")
	}
	origin := originOf(u)
	switch {
	case !validHost(origin.Host):
		return nil, invalid("base URL", "the host is no host name")
	case origin.Scheme == "https":
	case origin.Scheme != "http":
		return nil, invalid("base URL", "the scheme is not https")
	case !plainHTTP && !isLoopback(u.Hostname()):
		return nil, invalid("base URL", "http is for loopback only; use https or WithPlainHTTP")
	}
	segment, err := escapeSegment("customer", customer)
	if err != nil {
		return nil, err
	}
	root := strings.TrimRight(u.EscapedPath(), "/")
	if root != "" {
		if root, err = cleanPath("base URL", root); err != nil {
			return nil, invalid("base URL", "the path has an empty element, a dot element, a backslash, a control character or a bad escape")
		}
	}
	b := &base{scheme: origin.Scheme, host: origin.Host, path: root + "/" + segment + "/v1", customer: customer}
	b.prefix = b.scheme + "://" + b.host + b.path
	return b, nil
}

// expand puts one id after the other into the {placeholders} of a path, each as one escaped path element.
func expand(template string, ids ...string) (string, error) {
	var b strings.Builder
	for _, id := range ids {
		before, rest, found := strings.Cut(template, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return "", errors.New("webdelivery: more ids than placeholders in a path")
		}
		segment, err := escapeSegment(name, id)
		if err != nil {
			return "", err
		}
		b.WriteString(before + segment)
		template = after
	}
	b.WriteString(template)
	return b.String(), nil
}

// escapeSegment makes one path element of an id. What would leave its place in the path is refused: url.PathEscape
// leaves "." and ".." as they are, and a proxy may read an escaped slash or a backslash as a slash.
func escapeSegment(field, id string) (string, error) {
	switch {
	case id == "":
		return "", invalid(field, "is empty")
	case hasDots(id):
		return "", invalid(field, "%q would change the path", id)
	case strings.IndexFunc(id, isControl) >= 0:
		return "", invalid(field, "holds a control character")
	}
	return url.PathEscape(id), nil
}

func hasDots(id string) bool {
	for part := range strings.FieldsFuncSeq(id, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// cleanPath checks an escaped absolute path and brings its escapes into one form, so that two spellings of one path
// are equal. No element may be empty, "." or "..", also not behind an escape.
func cleanPath(field, path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", invalid(field, "path %q does not begin with a slash", path)
	}
	elements := strings.Split(path[1:], "/")
	for i, element := range elements {
		plain, err := url.PathUnescape(element)
		if err != nil {
			return "", invalid(field, "path %q has a bad escape", path)
		}
		if strings.Contains(plain, `\`) {
			return "", invalid(field, "path %q holds a backslash", path)
		}
		if elements[i], err = escapeSegment(field, plain); err != nil {
			return "", err
		}
	}
	return "/" + strings.Join(elements, "/"), nil
}

// resolve reads an address that the service sent (or that the user gave to Do) and returns its path and query below
// the base. Open point 29: addresses are relative to {base_url}/<customer>/v1; also read are those with that prefix in
// front, and absolute ones of the same origin. url.URL.Parse would drop the prefix, or follow the address elsewhere.
func (b *base) resolve(field, address string) (path, query string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", invalid(field, "not an address")
	}
	absolute := u.Scheme != "" || u.Host != ""
	switch {
	case u.Opaque != "" || u.User != nil || u.Fragment != "":
		return "", "", invalid(field, "must be a path and a query alone")
	case absolute && originOf(u) != url.URL{Scheme: b.scheme, Host: b.host}:
		return "", "", invalid(field, "leads to another origin, %s://%s", u.Scheme, u.Host)
	}
	path, err = cleanPath(field, u.EscapedPath())
	if err != nil {
		return "", "", err
	}
	below, prefixed := strings.CutPrefix(path, b.path+"/")
	switch {
	case prefixed:
		path = "/" + below
	case absolute:
		return "", "", invalid(field, "leads out of %s", b.path)
	}
	return path, u.RawQuery, nil
}

// originOfLocation is what an error tells of a Location: where it leads, without the rest, which may be a secret.
func (b *base) originOfLocation(location string) string {
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

// validMethod: an HTTP method is a token (RFC 9110 section 5.6.2), and letter case counts: no service knows "post".
func validMethod(method string) bool {
	if upper := strings.ToUpper(method); upper != method && slices.Contains(methods, upper) {
		return false
	}
	return method != "" && strings.IndexFunc(method, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}

var methods = []string{
	http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch, http.MethodPost,
	http.MethodPut, http.MethodTrace,
}
