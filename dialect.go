package webdelivery

import (
	"cmp"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Dialect holds the spellings of requests that the service document leaves open. Set only the fields in which your
// service differs; a zero field means its default. A Dialect changes only what the client sends: it reads every known
// spelling.
type Dialect struct {
	// TasksPrefix comes before /tasks. Default "".
	TasksPrefix string
	// StartTimeParam is the name of the start parameter of statistics queries. It may be "startime". Default
	// "starttime".
	StartTimeParam string
	// EntryKey is the member that holds an entry in a POST to entries. It may be "value". Default "entry".
	EntryKey string
	// EntryDeletePath is the path that deletes one entry, with {list} and {entry} in place of the ids, in this order.
	// Default "/config/networklists/{list}/{entry}".
	EntryDeletePath string
	// BatchDeletionMethod is the method for a list's entries_batch_deletion_uri. Default "POST".
	BatchDeletionMethod string
}

// dialectOf reads fields of a Dialect from a text such as "StartTimeParam=startime,EntryKey=value".
func dialectOf(text string) (d Dialect, err error) {
	fields := map[string]*string{
		"TasksPrefix": &d.TasksPrefix, "StartTimeParam": &d.StartTimeParam, "EntryKey": &d.EntryKey,
		"EntryDeletePath": &d.EntryDeletePath, "BatchDeletionMethod": &d.BatchDeletionMethod,
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, given := strings.Cut(part, "=")
		switch field := fields[strings.TrimSpace(name)]; {
		case text == "":
		case field == nil || !given:
			return d, invalid("WEBDELIVERY_DIALECT", "%q is not FIELD=VALUE of a Dialect", part)
		default:
			*field = strings.TrimSpace(value)
		}
	}
	if _, err := d.withDefaults(); err != nil {
		return d, invalid("WEBDELIVERY_DIALECT", "%s", strings.TrimPrefix(err.Error(), "webdelivery: invalid "))
	}
	return d, nil
}

// withDefaults fills in the zero fields, and refuses values that cannot be sent.
func (d Dialect) withDefaults() (Dialect, error) {
	d.StartTimeParam = cmp.Or(d.StartTimeParam, "starttime")
	d.EntryKey = cmp.Or(d.EntryKey, "entry")
	d.EntryDeletePath = cmp.Or(d.EntryDeletePath, "/config/networklists/{list}/{entry}")
	d.BatchDeletionMethod = cmp.Or(d.BatchDeletionMethod, "POST")

	if err := checkPath("TasksPrefix", d.TasksPrefix+"/tasks"); err != nil {
		return d, err
	}
	list, entry := strings.Index(d.EntryDeletePath, "{list}"), strings.Index(d.EntryDeletePath, "{entry}")
	if list < 0 || entry < list || strings.Count(d.EntryDeletePath, "{") != 2 {
		return d, invalid("EntryDeletePath", "needs {list} and {entry}, in this order and once each")
	}
	sample, err := expand(d.EntryDeletePath, "id", "id")
	if err != nil {
		return d, err
	}
	if err := checkPath("EntryDeletePath", sample); err != nil {
		return d, err
	}
	if !validMethod(d.BatchDeletionMethod) {
		return d, invalid("BatchDeletionMethod", "%q is not an HTTP method", d.BatchDeletionMethod)
	}
	return d, nil
}

// expand replaces the {placeholders} of a path by the ids in order, each escaped as one path segment.
func expand(template string, ids ...string) (string, error) {
	path, err := address.Expand(template, ids...)
	return path, asValidation(err)
}

// checkPath checks an escaped absolute path.
func checkPath(field, path string) error {
	_, err := address.Clean(field, path)
	return asValidation(err)
}
