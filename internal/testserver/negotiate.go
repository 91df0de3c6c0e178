package testserver

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const jsonType = "application/json"

// jsonRanges are the media ranges that include JSON, with their specificity.
var jsonRanges = map[string]int{"*/*": 1, "application/*": 2, jsonType: 3}

// negotiate rejects with 406 a body that is not declared as JSON, and a client that does not accept JSON.
func (c *call) negotiate() error {
	if len(c.body) > 0 {
		declared, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
		if err != nil || declared != jsonType {
			return refuse(http.StatusNotAcceptable, "the body must be declared as %s", jsonType)
		}
	}
	if !acceptsJSON(c.r.Header.Values("Accept")) {
		return refuse(http.StatusNotAcceptable, "responses have the type %s, which Accept excludes", jsonType)
	}
	return nil
}

// acceptsJSON follows RFC 9110 section 12.5.1: the most specific range decides, and q=0 excludes.
func acceptsJSON(fields []string) bool {
	if len(fields) == 0 {
		return true
	}
	best, accepted := 0, false
	for part := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rank := jsonRanges[media]
		if rank == 0 || rank < best {
			continue
		}
		quality, err := strconv.ParseFloat(params["q"], 64)
		best, accepted = rank, err != nil || quality > 0
	}
	return accepted
}
