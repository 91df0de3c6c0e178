package testserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
)

// refusal is the error of a request that the service rejects.
type refusal struct {
	status      int
	description string
	header      http.Header
}

// Error implements error.
func (r *refusal) Error() string { return r.description }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, description: fmt.Sprintf(format, args...), header: http.Header{}}
}

func (r *refusal) with(name, value string) *refusal {
	r.header.Set(name, value)
	return r
}

// errorResponse returns a rejection in a form of the dialect. The document shows only the body of a purge: code and
// description. That body is the default for all endpoints.
func errorResponse(err error, form string) response {
	var refused *refusal
	if !errors.As(err, &refused) {
		refused = refuse(http.StatusInternalServerError, "%v", err)
	}
	answer := errorBody(refused, form)
	maps.Copy(answer.header, refused.header)
	return answer
}

func errorBody(r *refusal, form string) response {
	switch form {
	case "message":
		return jsonResponse(r.status, map[string]any{"message": r.description})
	case "error_info":
		return jsonResponse(r.status, map[string]any{"error_info": errorInfo{
			Message: r.description, Type: http.StatusText(r.status), Details: []detail{{r.description}},
		}})
	case "html":
		text := fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
		return textResponse(r.status, "text/html; charset=utf-8", "<html><body><h1>"+text+"</h1></body></html>\n")
	case "empty":
		return response{status: r.status, header: http.Header{}}
	default:
		return jsonResponse(r.status, map[string]any{"code": r.status, "description": r.description})
	}
}
