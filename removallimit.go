package webdelivery

import (
	"strconv"

	"github.com/webdelivery/webdelivery-go/internal/listguard"
)

// RemovalLimit limits how many entries a plan may remove from a list. It is "none", "all", "default", a share such as
// "20%", or a number such as "100". Create it with [RemoveNone], [RemoveAll], [RemoveShare] or [RemoveAtMost]. The
// zero value is [RemoveDefault]. For any other text, [NetworkListsService.Plan] returns a [*ValidationError].
type RemovalLimit string

const (
	// RemoveNone allows no removal.
	RemoveNone RemovalLimit = listguard.None
	// RemoveAll allows every removal.
	RemoveAll RemovalLimit = listguard.All
	// RemoveDefault allows 20 % of the entries, rounded down. For a list with fewer than 20 entries it allows up to
	// 3, but never more than half of them. It allows 3 of 6, 1 of 3, 1 of 2, and 0 of 1. So an empty feed cannot
	// empty a list.
	RemoveDefault RemovalLimit = listguard.Default
)

// RemoveShare allows to remove a share of the entries, from 0 to 1, rounded down. A share of 0.2 allows 1 of 9
// entries and none of 4. Unlike [RemoveDefault], it does not allow more for a small list. If the share is out of that
// range, [NetworkListsService.Plan] returns a [*ValidationError].
func RemoveShare(share float64) RemovalLimit { return RemovalLimit(listguard.Share(share)) }

// RemoveAtMost allows to remove up to n entries, at least 0, also if these are all. If n is below 0,
// [NetworkListsService.Plan] returns a [*ValidationError].
func RemoveAtMost(entries int) RemovalLimit { return RemovalLimit(strconv.Itoa(entries)) }
