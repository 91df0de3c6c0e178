package webdelivery

import (
	"strconv"

	"github.com/webdelivery/webdelivery-go/internal/listguard"
)

// RemovalLimit bounds how many entries a plan may remove from a list. It is "none", "all", "default", a share such as
// "20%", or a number such as "100"; make it with [RemoveNone], [RemoveAll], [RemoveShare] or [RemoveAtMost]. The zero
// value is [RemoveDefault]. [NetworkListsService.Plan] returns a [*ValidationError] for any other text.
type RemovalLimit string

const (
	// RemoveNone allows no removal.
	RemoveNone RemovalLimit = listguard.None
	// RemoveAll allows every removal.
	RemoveAll RemovalLimit = listguard.All
	// RemoveDefault allows 20 % of the entries, rounded down. Of a list with fewer than 20 entries it allows up to 3, but
	// never more than half of them: 3 of 6, 1 of 3, 1 of 2, and not the only one. So an empty feed cannot empty a list.
	RemoveDefault RemovalLimit = listguard.Default
)

// RemoveShare allows to remove a share of the list's entries, from 0 to 1, rounded down: 0.2 is a fifth, which is 1 of 9
// entries and none of 4. Unlike [RemoveDefault] it allows no entry more for a small list. [NetworkListsService.Plan]
// returns a [*ValidationError] for a share out of that range.
func RemoveShare(share float64) RemovalLimit { return RemovalLimit(listguard.Share(share)) }

// RemoveAtMost allows to remove so many entries, at least 0, also if these are all. [NetworkListsService.Plan] returns a
// [*ValidationError] for a number below 0.
func RemoveAtMost(entries int) RemovalLimit { return RemovalLimit(strconv.Itoa(entries)) }
