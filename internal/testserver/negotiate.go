package testserver

import (
	"mime"
	"net/http"
	"strings"
)

const jsonType = "application/json"

// negotiate rejects with 406 a body that is not declared as JSON, and a client that does not accept JSON.
func (c *call) negotiate() error {
	if len(c.body) > 0 {
		declared, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
		if err != nil || declared != jsonType {
			return refuse(http.StatusNotAcceptable, "the body must be declared as %s", jsonType)
		}
	}
	if accept := c.r.Header.Get("Accept"); accept != "" && !strings.Contains(accept, jsonType) && !strings.Contains(accept, "*/*") {
		return refuse(http.StatusNotAcceptable, "responses have the type %s, which Accept excludes", jsonType)
	}
	return nil
}
