package webdelivery

import (
	"cmp"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Dialect holds every spelling on the wire that the service document leaves open, so that a user whose service differs
// changes one line. A zero field means its default. Reading is tolerant whatever the dialect says; only what is sent
// follows it.
type Dialect struct {
	// TasksPrefix stands in front of /tasks (service-interface section 4.1 does not show it). Default "".
	TasksPrefix string
	// StartTimeParam is the name of the start parameter of statistics queries, spelled starttime and startime in
	// service-interface section 4.2. Default "starttime".
	StartTimeParam string
	// EntryKey is the member that holds an entry in a POST to entries, called entry and value in service-interface
	// section 4.6. Default "entry".
	EntryKey string
	// EntryDeletePath is where one entry is deleted; {list} and {entry} stand for the ids, in this order. Default
	// "/config/networklists/{list}/{entry}" (service-interface section 4.6).
	EntryDeletePath string
	// BatchDeletionMethod is sent to a list's entries_batch_deletion_uri (service-interface section 4.6 does not show
	// it). Default "POST".
	BatchDeletionMethod string
}

// withDefaults fills the zero fields, and refuses what could not be sent.
func (d Dialect) withDefaults() (Dialect, error) {
	d.StartTimeParam = cmp.Or(d.StartTimeParam, "starttime")
	d.EntryKey = cmp.Or(d.EntryKey, "entry")
	d.EntryDeletePath = cmp.Or(d.EntryDeletePath, "/config/networklists/{list}/{entry}")
	d.BatchDeletionMethod = cmp.Or(d.BatchDeletionMethod, "POST")

	if _, err := cleanPath("TasksPrefix", d.TasksPrefix+"/tasks"); err != nil {
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
	if _, err := cleanPath("EntryDeletePath", sample); err != nil {
		return d, err
	}
	if !address.ValidMethod(d.BatchDeletionMethod) {
		return d, invalid("BatchDeletionMethod", "%q is no HTTP method", d.BatchDeletionMethod)
	}
	return d, nil
}
