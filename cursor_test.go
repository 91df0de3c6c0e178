package webdelivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// A cursor is read however its JSON is laid out, and the zero cursor is null. Text that is no cursor, or a cursor of
// which anything has changed, is refused.
func TestStoredCursors(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(5, 2), func(e *anExport) {
		cursor := e.stored(webdelivery.Cursor{})
		assert.Zero(e, cursor)
		assert.Zero(e, cursor.Count())
		assert.Zero(e, cursor.Time())
		assert.Zero(e, cursor.Reached())
		for text, reason := range map[string]string{
			`{"version":2,"query":"a","columns":["b"],"position":{"rows":0},"check":"00"}`: "has version 2, and this SDK reads version 1; begin a new export without a cursor",
			`{"version":1,"check":"00","cursor":{}}`:                                       "is damaged",
			`{"version":1}`:                                                                "is damaged", `{}`: "is not the JSON of a cursor", `7`: "is not the JSON", `[]`: "is not the JSON",
			`{"version":3,"cursor":"` + strings.Repeat("x", 64<<20) + `"}`: "has 67108889 bytes, which are more than 67108864",
		} {
			err := json.Unmarshal([]byte(text), &cursor)
			require.ErrorIs(e, err, webdelivery.ErrInvalid)
			assert.ErrorContains(e, err, reason)
		}
		export := e.from(cursor)
		e.all(export)
		text, err := json.MarshalIndent(export.Cursor(), "", "  ")
		require.NoError(e, err)
		require.NoError(e, json.Unmarshal(text, &cursor))
		assert.Equal(e, int64(10), cursor.Count())
		for i, b := range text {
			if b != ' ' && b != '\n' {
				changed := bytes.Clone(text)
				changed[i] ^= 1
				require.Error(e, json.Unmarshal(changed, &cursor), "%s", changed)
			}
		}
	})
}

// A file has the cursor that was stored last, also for the next process, and one process at a time has it open.
func TestCursorFile(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(5, 2), func(e *anExport) {
		name := filepath.Join(e.TempDir(), "cursor")
		file, err := webdelivery.OpenCursorFile(name)
		require.NoError(e, err)
		assert.Zero(e, file.Cursor)
		_, err = webdelivery.OpenCursorFile(name)
		require.ErrorIs(e, err, webdelivery.ErrCursorInUse)
		require.ErrorContains(e, err, name)

		export := e.from(file.Cursor)
		_, err = e.read(export, 7)
		require.NoError(e, err)
		require.NoError(e, os.WriteFile(name+".new", []byte("half"), 0o600)) // left by a kill
		require.NoError(e, file.Store(webdelivery.Cursor{}))
		require.NoError(e, file.Store(export.Cursor()))
		require.NoError(e, file.Close())
		if runtime.GOOS != "windows" {
			info, err := os.Stat(name)
			require.NoError(e, err)
			assert.Equal(e, os.FileMode(0o600), info.Mode().Perm())
		}

		file, err = webdelivery.OpenCursorFile(name)
		require.NoError(e, err)
		assert.Equal(e, int64(7), file.Cursor.Count())
		require.NoError(e, file.Close())
		entries, err := os.ReadDir(filepath.Dir(name))
		require.NoError(e, err)
		assert.Len(e, entries, 2, "the cursor and its lock")

		require.NoError(e, os.WriteFile(name, []byte(`{"version":1}`), 0o600))
		_, err = webdelivery.OpenCursorFile(name)
		require.ErrorIs(e, err, webdelivery.ErrInvalid)
		require.NoError(e, os.Remove(name))
		file, err = webdelivery.OpenCursorFile(name)
		require.NoError(e, err, "a damaged file is not locked")
		require.NoError(e, file.Close())
		require.ErrorIs(e, file.Store(webdelivery.Cursor{}), fs.ErrClosed)
		require.ErrorIs(e, file.Close(), fs.ErrClosed)
		_, err = webdelivery.OpenCursorFile("")
		require.ErrorIs(e, err, webdelivery.ErrInvalid)
		_, err = webdelivery.OpenCursorFile(filepath.Join(name, "below a file"))
		require.Error(e, err)
		assert.NotErrorIs(e, err, webdelivery.ErrCursorInUse)
	})
}

// A symbolic link stands for its file, also for one that does not exist yet: it is locked and replaced, and the link stays.
func TestALinkToACursorFile(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(5, 2), func(e *anExport) {
		folder := e.TempDir()
		for i, to := range []string{filepath.Join(folder, "absolute"), "relative", "absolute", "relative"} {
			name, link := filepath.Join(folder, filepath.Base(to)), filepath.Join(folder, fmt.Sprint("link", i))
			if os.Symlink(to, link) != nil {
				e.Skip("no symbolic links")
			}
			file, err := webdelivery.OpenCursorFile(link)
			require.NoError(e, err)
			_, err = webdelivery.OpenCursorFile(name)
			require.ErrorIs(e, err, webdelivery.ErrCursorInUse)
			require.NoError(e, file.Store(e.from(webdelivery.Cursor{}).Cursor()))
			require.NoError(e, file.Close())
			now, err := os.Readlink(link)
			require.NoError(e, err)
			assert.Equal(e, to, now)
			assert.FileExists(e, name)
		}
	})
}

// A cursor belongs to a customer and a path, whatever the host is called.
func TestACursorOfAnotherCustomer(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(2, 2), func(e *anExport) {
		export := e.from(webdelivery.Cursor{})
		e.all(export)
		for differs, at := range map[string][2]string{
			"customer":                          {"https://api.example.com", "umbrella"},
			"path of the base URL":              {"https://api.example.com/eu", fixture.Customer},
			"customer and path of the base URL": {"https://api.example.com/eu", "umbrella"},
			"":                                  {"https://api.example.org:8443/", fixture.Customer},
		} {
			var err error
			e.client, err = webdelivery.NewClient(at[0], at[1], webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithHTTPClient(&http.Client{Transport: e.service}))
			require.NoError(e, err)
			if _, err = e.read(e.from(export.Cursor()), 1); differs == "" {
				require.NoError(e, err)
			} else {
				require.ErrorIs(e, err, webdelivery.ErrInvalid)
				assert.ErrorContains(e, err, "another export: "+differs+" differs")
			}
		}
	})
}
