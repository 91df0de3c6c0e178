package testserver

import (
	"errors"
	"fmt"
	"net/http"
)

// refusal is a request that the service does not carry out.
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

// refusalOf words a refusal as the dialect has it. The document shows only the body of a purge (service-interface
// sections 2.3 and 7: code and description), which is that of a purge in every dialect and the default for all.
func (s *Server) refusalOf(rt route, err error) reply {
	if rt.limited {
		return errorReply(err, "code")
	}
	return s.errorReply(err)
}

func (s *Server) errorReply(err error) reply { return errorReply(err, s.dialect.Errors) }

func errorReply(err error, form string) reply {
	var refused *refusal
	if !errors.As(err, &refused) {
		refused = refuse(http.StatusInternalServerError, "%v", err)
	}
	answer := errorBody(refused, form)
	for name, values := range refused.header {
		answer.header[name] = values
	}
	return answer
}

func errorBody(r *refusal, form string) reply {
	switch form {
	case "message":
		return jsonReply(r.status, map[string]any{"message": r.description})
	case "error_info":
		return jsonReply(r.status, map[string]any{"error_info": errorInfo{
			Message: r.description, Type: http.StatusText(r.status), Details: []detail{{r.description}},
		}})
	case "html":
		text := fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
		return textReply(r.status, "text/html; charset=utf-8", "<html><body><h1>"+text+"</h1></body></html>\n")
	case "empty":
		return reply{status: r.status, header: http.Header{}}
	default:
		return jsonReply(r.status, map[string]any{"code": r.status, "description": r.description})
	}
}
