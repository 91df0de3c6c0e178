package redistest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Rights returns the permissions of the Redis user that doc.go of the package under test lists, in the lines of code
// blocks that begin with ~ or +.
func Rights(t *testing.T) (rights []string) {
	t.Helper()
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^//\t([~+].*)$`).FindAllStringSubmatch(string(page), -1) {
		rights = append(rights, strings.Fields(line[1])...)
	}
	if len(rights) == 0 {
		t.Fatal("redistest: doc.go names no rights")
	}
	return rights
}
