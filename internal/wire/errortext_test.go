package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Open point 31: an object with code/description, with message, or with error_info, gives the text; anything else gives
// nothing.
func TestErrorBodiesGiveTheirText(t *testing.T) {
	t.Parallel()
	const fallback = ""
	for body, want := range map[string]string{
		`{"code":400,"description":"words"}`:   "words",
		`{"code":"400","description":"words"}`: "words",
		// A code that is not a number is no reason to hide what the service says.
		`{"code":"INVALID_DOMAIN","description":"words"}`:                              "words",
		`{"code":400.5,"message":"words"}`:                                             "words",
		`{"code":null,"description":"words"}`:                                          "words",
		`{"description":"words","code":{"major":4}}`:                                   "words",
		`{"description":"words"}`:                                                      "words",
		`{"message":"words"}`:                                                          "words",
		`{"code":400,"description":"","message":"words"}`:                              "words",
		`{"code":400,"description":null,"message":"words"}`:                            "words",
		`{"error_info":{"message":"words","type":"T","details":[{"message":"more"}]}}`: "words",
		`{"error_info":null,"message":"words","new":{}}`:                               "words",
		`{"code":400,"description":"words","purge_response":null}`:                     "words",
		`{"description":"words","message":"b","error_info":{"message":"c"}}`:           "words",
		`{"description":"","message":"words","error_info":{"message":"c"}}`:            "words",
		`{"description":null,"message":5,"error_info":{"message":"words"}}`:            "words",
		`{"error_info":{"message":"words","details":7}}`:                               "words",
		`{"Description":"words"}`:                                                      fallback,
		`{"code":400}`:                                                                 fallback,
		`{"error_info":{}}`:                                                            fallback,
		`{"error":"words"}`:                                                            fallback,
		`{}`:                                                                           fallback,
		`null`:                                                                         fallback,
		`[]`:                                                                           fallback,
		`"words"`:                                                                      fallback,
		`words`:                                                                        fallback,
		`{"description":"wor`:                                                          fallback,
		`<html><h1>400 Bad Request</h1></html>`:                                        fallback,
		``:                                                                             fallback,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.ErrorText([]byte(body)))
		})
	}
}
