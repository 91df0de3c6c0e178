package objects

import (
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Kind is a kind of objects with an id of their own.
type Kind int

// The kinds of section 2 of the service document.
const (
	Task Kind = iota
	List
	Entry
	EntryInfo
)

// membersOf are the members that the service document gives to some kinds and not to others (sections 2.1 and 2.6).
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

// Foreign returns a member that shows that an object is of another kind; "" if it may be of this one. An object is of
// another kind if it has members that the service document gives to others, and none that it gives to its own kind alone.
// Members that are not in the document prove nothing.
func Foreign(kind Kind, object []byte) string {
	foreign := ""
	for text := range wire.Members(object) {
		name, own, others := string(text), false, false
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
