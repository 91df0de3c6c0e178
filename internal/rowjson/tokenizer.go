package rowjson

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// tokenizer is the one of jsontext, but its errors do not name the member in which they occurred. jsontext shortens
// long names there, so the error could hold a piece of a secret, which the redaction would not find.
type tokenizer struct{ *jsontext.Decoder }

func newTokenizer(from io.Reader, options ...jsontext.Options) tokenizer {
	return tokenizer{jsontext.NewDecoder(from, append(options, wire.UnboundedNames)...)}
}

func (t tokenizer) ReadToken() (jsontext.Token, error) {
	token, err := t.Decoder.ReadToken()
	return token, withoutPointer(err)
}

func (t tokenizer) ReadValue() (jsontext.Value, error) {
	value, err := t.Decoder.ReadValue()
	return value, withoutPointer(err)
}

func withoutPointer(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // the tokenizer's own; almost always, and without an allocation
		return err
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return &jsontext.SyntacticError{ByteOffset: syntax.ByteOffset, Err: syntax.Err}
	}
	return err
}
