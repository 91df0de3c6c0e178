package testserver_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// lists is the path of the network lists.
const lists = "/config/networklists"

// entriesBody returns a body of POST entries in the default dialect.
func entriesBody(texts ...string) string {
	var b strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&b, `%c{"entry":%q}`, "[,"[min(i, 1)], text)
	}
	return b.String() + "]"
}

func (f fake) add(list string, texts ...string) response {
	f.t.Helper()
	return f.do(http.MethodPost, lists+"/"+list+"/entries", entriesBody(texts...))
}

// items returns one member of each item of the paged collection at path.
func (f fake) items(path, member string) []string {
	f.t.Helper()
	r := f.get(path)
	require.Equal(f.t, http.StatusOK, r.status, r.body)
	values := []string{}
	items, _ := r.object(f.t)["items"].([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		values = append(values, fmt.Sprint(object[member]))
	}
	return values
}
