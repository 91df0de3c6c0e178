package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Reason describes an error of a decoder and the field that it is about. It returns "" for nil.
func Reason(err error) string {
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &typed):
		// If a type decodes itself with an embedded type plain, the path of the field contains that name.
		field := strings.ReplaceAll(typed.Field, "plain.", "")
		return fmt.Sprintf("%s: %s does not fit %v", field, typed.Value, typed.Type)
	default:
		return err.Error()
	}
}
