package transport

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// A password that changes with every call costs no search expressions until a text needs them. Then it is found.
func TestFinderIsMadeWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	n := 0
	pair := func(context.Context) (string, redact.Secret, error) {
		n++
		return "alice", redact.New(fmt.Sprint("pass-word-", n)), nil
	}
	a := New(Config{Credentials: Credentials{Pair: pair}})
	for range 20 {
		_, err := a.authorization(t.Context())
		require.NoError(t, err)
	}
	assert.Nil(t, a.secrets.found)
	assert.NotContains(t, a.secrets.finder().Text("it is pass-word-20", redact.Most), "pass-word-20")
	assert.NotNil(t, a.secrets.found)
}
