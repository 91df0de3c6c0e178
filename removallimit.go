package webdelivery

import (
	"math"
	"strconv"
	"strings"
)

// RemovalLimit bounds how many entries a plan may remove from a list. It is "none", "all", a share such as "20%", or a
// number such as "100"; make it with [RemoveNone], [RemoveAll], [RemoveShare] or [RemoveAtMost]. The zero value is the
// default, "20%".
type RemovalLimit string

const (
	// RemoveNone allows no removal.
	RemoveNone RemovalLimit = "none"
	// RemoveAll allows every removal.
	RemoveAll RemovalLimit = "all"

	defaultRemovals RemovalLimit = "20%" // so that an empty feed cannot open a firewall
)

// RemoveShare allows to remove a share of the list's entries, from 0 to 1: 0.2 is a fifth. [NetworkListsService.Plan]
// refuses a share out of that range with a [*ValidationError].
func RemoveShare(share float64) RemovalLimit {
	percent := math.Round(share*1e14) / 1e12 // 0.29 is 29 %, and not a little less
	return RemovalLimit(strconv.FormatFloat(percent, 'f', -1, 64) + "%")
}

// RemoveAtMost allows to remove so many entries, at least 0. [NetworkListsService.Plan] refuses a number below 0 with a
// [*ValidationError].
func RemoveAtMost(entries int) RemovalLimit { return RemovalLimit(strconv.Itoa(entries)) }

// of returns how many entries of a list of this size may be removed, or false for a text that is no limit.
func (l RemovalLimit) of(size int) (most int, ok bool) {
	switch l {
	case RemoveNone:
		return 0, true
	case RemoveAll:
		return size, true
	default:
	}
	share, isShare := strings.CutSuffix(string(l), "%")
	if share == "" || strings.Trim(share, "0123456789.") != "" || strings.HasPrefix(share, ".") || strings.HasSuffix(share, ".") {
		return 0, false // the package strconv takes more: signs, exponents, NaN
	}
	if isShare {
		percent, err := strconv.ParseFloat(share, 64)
		const rounding = 1e-9 // a third of 30 may be a little less than 10
		return int(percent/100*float64(size) + rounding), err == nil && percent <= 100
	}
	n, err := strconv.Atoi(share)
	return n, err == nil
}

// shareFor is the smallest share that allows to remove n of size entries, in steps of 0.01 %.
func shareFor(n, size int) RemovalLimit {
	const steps = 10_000
	return RemoveShare(float64((n*steps+size-1)/size) / steps)
}
