package objects

import (
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Kind is a kind of object that has an id.
type Kind int

// The kinds of section 2 of the service document.
const (
	Task Kind = iota
	List
	Entry
	EntryInfo
)

// membersOf has the members that some kinds have and others do not (service document, sections 2.1 and 2.6).
var membersOf = [...][]string{
	Task: {
		"operation", "status", "complete", "progress", "begin_time", "end_time", "last_updated", "user", "target", "error_info",
	},
	List: {
		"list", "name", "description", "deprecated", "entries_uri", "entries_batch_deletion_uri", "modified_timestamp",
		"type", "creation_timestamp",
	},
	Entry:     {"entry", "added_by", "creation_timestamp"},
	EntryInfo: {"network_list_uri", "type"},
}

// Foreign returns a member which proves that an object is of another kind; "" if the object may be of this kind. An
// object is of another kind if it has a member of other kinds only, and no member of this kind only. Members that the
// service document does not name prove nothing.
func Foreign(kind Kind, object []byte) string {
	foreign := ""
	for name := range wire.Members(object) {
		own, others := false, false
		for k, members := range membersOf {
			has := slices.Contains(members, name)
			own = own || has && Kind(k) == kind
			others = others || has && Kind(k) != kind
		}
		switch {
		case own && !others:
			return ""
		case others && !own:
			foreign = name
		}
	}
	return foreign
}

// Problem returns why an object is not of this kind; "" if it may be. missing is the required member that it lacks, or
// "". evident means that it has a member that no other kind has.
func Problem(kind Kind, object []byte, missing string, evident bool) string {
	if missing != "" {
		return "no " + missing
	}
	if evident {
		return ""
	}
	if foreign := Foreign(kind, object); foreign != "" {
		return "another resource, which has " + foreign
	}
	return ""
}
