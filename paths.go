package webdelivery

import (
	"errors"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Package internal/address makes and checks every address. Here its errors become those that users see.

// expand puts one id after the other into the {placeholders} of a path, each as one escaped path element.
func expand(template string, ids ...string) (string, error) {
	path, err := address.Expand(template, ids...)
	return path, asValidation(err)
}

// cleanPath checks an escaped absolute path and returns its one spelling.
func cleanPath(field, path string) (string, error) {
	path, err := address.Clean(field, path)
	return path, asValidation(err)
}

// asValidation returns the *ValidationError for an *address.Error, with the same field and reason, and every other error
// as it is.
func asValidation(err error) error {
	if e, ok := errors.AsType[*address.Error](err); ok {
		return &ValidationError{Field: e.Field, Reason: e.Reason}
	}
	return err
}
