// Package outcomes names what became of a request, for the packages that send requests and those that combine them.
package outcomes

// Outcome says whether the service carried out a request that failed.
type Outcome int

// The outcomes. Unknown is the zero value.
const (
	Unknown    Outcome = iota // the service may have processed it, or not
	NotApplied                // the service certainly did not process it
	Applied                   // the service processed it
)
