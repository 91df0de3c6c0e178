package paging

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The parameters of the first request apply to every page (service document, section 2.6), but a next_uri may omit
// them.
func TestWithFilters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, first, next, want string }{
		{"the same", "status=failed&count=5", "status=failed&count=5&page=2", "count=5&page=2&status=failed"},
		{"left out", "status=failed", "page=2", "page=2&status=failed"},
		{"nothing is given", "a=1", "", "a=1"},
		{"another value", "status=failed", "status=done&page=2", "page=2&status=failed"},
		{"the number of the page is the service's", "page=1&a=1", "page=2&a=1", "page=2&a=1"},
		{"the page is not put back", "page=1", "cursor=x", "cursor=x"},
		{"the count is the service's if it gives one", "count=5", "count=100&page=2", "count=100&page=2"},
		{"a count that is left out", "count=5", "page=2", "page=2&count=5"},
		{"what the service adds stays as it is", "a=1", "a=1&x=%41;b&y", "x=%41;b&y&a=1"},
		{"a plus that the service forgot to escape", "q=a%2Bb", "q=a+b", "q=a%2Bb"},
		{"empty parts do not count", "a=1", "&a=1&&b=2&", "b=2&a=1"},
	} {
		assert.Equal(t, tt.want, withFilters(tt.next, tt.first), tt.name)
	}
}
