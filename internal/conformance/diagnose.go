package conformance

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Diagnose reads a page of network lists and one of tasks, and returns what is wrong with the settings in one line, or ""
// if nothing is. It finds the path in front of /tasks unless the [Target] names it.
func (s *Service) Diagnose(ctx context.Context) (trouble string) {
	defer func() {
		if end, ended := recover().(outcome); ended {
			trouble = "cannot reach the service: " + end.detail + "; check the base URL, and that the service is running"
		}
		trouble = s.secrets.Text(trouble, redact.Most)
	}()
	p := &probe{Service: s, ctx: ctx}
	r := p.get(lists + "?count=1")
	for _, prefix := range []string{"", "/config"} { // open point 1: the document shows none, and network lists are below /config
		if s.TasksPrefix == "" && p.get(prefix+"/tasks").status == http.StatusOK {
			s.TasksPrefix = prefix
			break
		}
	}
	tasks := p.get(p.tasks(""))
	s.tasksFound = tasks.status == http.StatusOK
	var page struct{ Items *[]any } // section 2.6
	switch {
	case r.status == http.StatusUnauthorized:
		return fmt.Sprintf("%s returned 401: the service refuses the user name or the password, or does not know the customer", r.request)
	case r.status >= 300 && r.status < 400:
		place := "another path"
		if to, err := url.Parse(r.header.Get("Location")); err == nil && to.Host != "" {
			place = to.Scheme + "://" + to.Host // the rest may be private
		}
		return fmt.Sprintf("%s returned %d, a redirect to %s: check the base URL", r.request, r.status, place)
	case r.status == http.StatusNotFound && tasks.status == http.StatusNotFound:
		return fmt.Sprintf("%s and %s returned 404: check the customer, and the path of the base URL", r.request, tasks.request)
	case r.status == http.StatusForbidden:
		return fmt.Sprintf("%s returned 403: the user may not read this customer, or the customer or the password is wrong", r.request)
	case r.status >= 400:
		return fmt.Sprintf("%s returned %d: the service is in trouble, or the base URL names something else", r.request, r.status)
	case !r.isJSON(&page) || page.Items == nil:
		return fmt.Sprintf("%s returned %s: this is another service, check the base URL", r.request, r.shape())
	}
	return ""
}

// Spelling is a field of the SDK's Dialect with the value that fits the service.
type Spelling struct{ Field, Value, Default string }

// Dialect returns the spellings that the service accepts, as far as the rules that were tried have shown them.
func (s *Service) Dialect() (known []Spelling) {
	entryPath := ""
	if s.entryDelete != "" {
		entryPath = lists + "/" + s.entryDelete
	}
	all := []Spelling{
		{"TasksPrefix", s.TasksPrefix, ""},
		{"StartTimeParam", s.startParam, "starttime"},
		{"EntryKey", s.entryKey, "entry"},
		{"EntryDeletePath", entryPath, lists + "/{list}/{entry}"},
		{"BatchDeletionMethod", s.clearMethod, http.MethodPost},
	}
	if !s.tasksFound {
		all = all[1:]
	}
	for _, d := range all {
		if d.Value != "" || d.Default == "" {
			known = append(known, d)
		}
	}
	return known
}

// Fits returns the text of WEBDELIVERY_DIALECT for these spellings: those that are not the default.
func Fits(known []Spelling) string {
	var changed []string
	for _, d := range known {
		if d.Value != d.Default {
			changed = append(changed, d.Field+"="+cmp.Or(d.Value, d.Default))
		}
	}
	return strings.Join(changed, ",")
}
