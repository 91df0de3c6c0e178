package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBroken(t *testing.T) {
	t.Parallel()
	const limiter = "pkg p, type Limiter interface\npkg p, type Limiter interface, Wait(context.Context) error\n"
	const sealed = "pkg p, type Expr interface\npkg p, type Expr interface, and unexported methods\n"
	const choice = "pkg p, type Query interface\npkg p, type Query interface, one of A | B\n"
	tests := []struct {
		name, old, now string
		broken         string // joined by line ends
	}{
		{"nothing", "pkg p, func F()", "pkg p, func F()", ""},
		{"gone", "pkg p, func F()\npkg p, func G()", "pkg p, func G()", "- pkg p, func F()"},
		{"come", "pkg p, func F()", "pkg p, func F()\npkg p, func G()\npkg p, type T struct\npkg q, const C int = 1", ""},
		{"moved to another package", "pkg p, func F()", "pkg q, func F()", "- pkg p, func F()"},
		{"another signature", "pkg p, func F()", "pkg p, func F(int)", "- pkg p, func F()\n+ pkg p, func F(int)"},
		{"a name that begins alike", "pkg p, func F()", "pkg p, func FG()", "- pkg p, func F()"},
		{"another value", "pkg p, const C int = 1", "pkg p, const C int = 2", "- pkg p, const C int = 1\n+ pkg p, const C int = 2"},
		{"constant to variable", "pkg p, const C int = 1", "pkg p, var C int", "- pkg p, const C int = 1"},
		{
			"another tag", "pkg p, type T struct, A int `json:\"a\"`", "pkg p, type T struct, A int `json:\"b\"`",
			"- pkg p, type T struct, A int `json:\"a\"`\n+ pkg p, type T struct, A int `json:\"b\"`",
		},
		{
			"method of a generic type", "pkg p, method (*T[Q any]) M(Q)\npkg p, method (*T[Q any]) N()", "pkg p, method (*T[Q any]) M()\npkg p, method (*T[Q any]) N()",
			"- pkg p, method (*T[Q any]) M(Q)\n+ pkg p, method (*T[Q any]) M()",
		},
		{
			"field of a generic type", "pkg p, type T[Q any] struct\npkg p, type T[Q any] struct, A Q", "pkg p, type T[Q any] struct\npkg p, type T[Q any] struct, A int",
			"- pkg p, type T[Q any] struct, A Q\n+ pkg p, type T[Q any] struct, A int",
		},
		{"a type of another kind", "pkg p, type T string", "pkg p, type T int", "- pkg p, type T string\n+ pkg p, type T int"},
		{"a field more", "pkg p, type T struct", "pkg p, type T struct\npkg p, type T struct, A int", ""},
		{"something to hide", "pkg p, type T struct", "pkg p, type T struct\npkg p, type T struct, and unexported fields", ""},
		{"nothing to hide", "pkg p, type T struct\npkg p, type T struct, and unexported fields", "pkg p, type T struct", ""},

		{"an interface asks more", limiter, limiter + "pkg p, type Limiter interface, Pause() error", "+ pkg p, type Limiter interface, Pause() error"},
		{
			"an interface asks something else", limiter, strings.Replace(limiter, "Wait(context.Context)", "Wait()", 1),
			"- pkg p, type Limiter interface, Wait(context.Context) error\n+ pkg p, type Limiter interface, Wait() error",
		},
		{
			"an interface asks less", limiter, "pkg p, type Limiter interface",
			"- pkg p, type Limiter interface, Wait(context.Context) error",
		},
		{
			"an interface closes", limiter, limiter + "pkg p, type Limiter interface, and unexported methods",
			"+ pkg p, type Limiter interface, and unexported methods",
		},
		{"an interface becomes a choice", limiter, limiter + "pkg p, type Limiter interface, one of A", "+ pkg p, type Limiter interface, one of A"},
		{"a new interface", "pkg p, func F()", "pkg p, func F()\n" + limiter, ""},
		{"nobody implements it", sealed, sealed + "pkg p, type Expr interface, String() string", ""},
		{"nobody implements it, and now everybody may", sealed, "pkg p, type Expr interface\npkg p, type Expr interface, String() string", ""},
		{"more to choose from", choice, strings.Replace(choice, "A | B", "C | B | A", 1), ""},
		{
			"less to choose from", choice, strings.Replace(choice, "A | B", "B | C", 1),
			"- pkg p, type Query interface, one of A | B\n+ pkg p, type Query interface, one of B | C",
		},
		{"a choice is gone", choice, "pkg p, type Query interface", "- pkg p, type Query interface, one of A | B"},

		{"the next release", "pkg webdelivery, const Version untyped string = \"0.1.0\"", "pkg webdelivery, const Version untyped string = \"0.2.0\"", ""},
		{
			"the version gets a type", "pkg webdelivery, const Version untyped string = \"0.1.0\"", "pkg webdelivery, const Version V = \"0.2.0\"",
			"- pkg webdelivery, const Version untyped string = \"0.1.0\"\n+ pkg webdelivery, const Version V = \"0.2.0\"",
		},
		{"no version", "pkg webdelivery, const Version untyped string = \"0.1.0\"", "", "- pkg webdelivery, const Version untyped string = \"0.1.0\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lines := broken(strings.Split(strings.TrimSpace(tt.old), "\n"), strings.Split(strings.TrimSpace(tt.now), "\n"))
			assert.Equal(t, tt.broken, strings.Join(lines, "\n"))
		})
	}
}

// Each line of the surface has a name by which broken matches changes.
func TestEveryLineHasAName(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../api/current.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		assert.Regexp(t, name, line)
	}
	assert.Empty(t, broken(lines, lines))
	assert.Len(t, broken(lines, nil), strings.Count(string(text), "\n")-strings.Count(string(text), ", and unexported "))
}

func TestSince(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "old.txt")
	require.NoError(t, os.WriteFile(file, []byte("pkg p, func F()\npkg p, func G()\n"), 0o600))
	lines, err := since(file, []string{"pkg p, func G()"})
	require.NoError(t, err)
	assert.Equal(t, []string{"- pkg p, func F()"}, lines)

	_, err = since(file+"x", nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
