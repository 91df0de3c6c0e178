package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

func TestDefects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":{"a":1}}`:        "",
		`{"a":1,"b":2,"a":1}`:        "a comes twice",
		`[{"x":{"a":1,"\u0061":2}}]`: "a comes twice",
		`{"a":"\ud83d\ude00"}`:       "",
		`{"a":"\ud83d"}`:             "half of a surrogate pair",
		`{"a":1,"a"`:                 "",
		``:                           "",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.Defect([]byte(text)))
		})
	}
}

func TestIsCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		``: false, ` `: false, `{"a":1}`: false, `{"a":1`: true, ` [1,`: true, `"text`: true, `"text"`: false, `{"a" 1`: false, `<html`: false,
		`12`: false, `nul`: false, `{"a":1,"a":`: true, `{}x`: false,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.IsCut([]byte(text)))
		})
	}
}

func TestClipNeverCuts(t *testing.T) {
	t.Parallel()
	assert.Equal(t, strings.Repeat("a", 200), string(wire.Clip([]byte(strings.Repeat("a", 200)))))
	assert.Equal(t, "a value of 201 bytes", string(wire.Clip([]byte(strings.Repeat("a", 201)))))
}
