package filelock_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/filelock"
)

// A file is open once. Afterwards it can be opened again.
func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Open(path)
	require.NoError(t, err)
	_, err = filelock.Open(path)
	require.ErrorIs(t, err, filelock.ErrLocked)
	require.NoError(t, first.Close())
	again, err := filelock.Open(path)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	_, err = filelock.Open(filepath.Join(path, "below a file"))
	require.Error(t, err)
	assert.NotErrorIs(t, err, filelock.ErrLocked)
}
