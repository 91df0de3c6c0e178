package address

import (
	"net/http"
	"slices"
	"strings"
)

// ValidMethod reports whether method is an HTTP method: a token (RFC 9110 section 5.6.2). Letter case counts, because no
// service knows "post".
func ValidMethod(method string) bool {
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
