package wire

import (
	"net/http"
	"strings"
)

// IsHTML reports whether a response is a page for people, which no service sends.
func IsHTML(h http.Header) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, "text/html") || strings.EqualFold(mediaType, "application/xhtml+xml")
}
