package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
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
