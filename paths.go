package webdelivery

import (
	"errors"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Package internal/address builds and checks every address. This file turns its errors into those that users see.

// expand replaces the {placeholders} of a path by the ids in order, each escaped as one path segment.
func expand(template string, ids ...string) (string, error) {
	path, err := address.Expand(template, ids...)
	return path, asValidation(err)
}

// cleanPath checks an escaped absolute path and returns it in its normal form.
func cleanPath(field, path string) (string, error) {
	path, err := address.Clean(field, path)
	return path, asValidation(err)
}

// asValidation turns an *address.Error into a *ValidationError with the same field and reason. It returns other
// errors unchanged.
func asValidation(err error) error {
	if e, ok := errors.AsType[*address.Error](err); ok {
		return &ValidationError{Field: e.Field, Reason: e.Reason}
	}
	return err
}
