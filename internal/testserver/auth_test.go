package testserver_test

import (
	"net/http"

	"github.com/stretchr/testify/require"
)

func (f fake) login() string {
	f.t.Helper()
	r := f.do(http.MethodPost, "/sessions", "")
	require.Equal(f.t, http.StatusCreated, r.status, r.body)
	id, _ := r.object(f.t)["id"].(string)
	require.NotEmpty(f.t, id)
	return id
}
