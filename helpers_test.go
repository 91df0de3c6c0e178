package webdelivery_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// refusedAs checks that the client refused a call because of this field.
func refusedAs(t *testing.T, field string, err error, call string) {
	t.Helper()
	var refused *webdelivery.ValidationError
	require.ErrorAs(t, err, &refused, call)
	assert.Equal(t, field, refused.Field, call)
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), call)
}

// failedURIs returns the URIs of an error.
func failedURIs(e *webdelivery.QueueError) (uris []webdelivery.PurgeURI) {
	for _, f := range e.Failures {
		uris = append(uris, f.URI)
	}
	return uris
}
