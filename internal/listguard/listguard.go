// Package listguard says how much of a list may change at once: how many entries may go, how many may come, and how wide a
// range may be. It knows entries as texts, and nothing of lists, plans or requests.
//
// Entry points: [Removals], [Share], [AllowRemovals], [Additions.Refused] and [Places].
package listguard

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Limits of removals that are words. All others are a number, or a share with a percent sign.
const (
	None    = "none"
	All     = "all"
	Default = "default"
)

// The default allows a fifth of the entries. A fifth of a small list is nothing, so there it allows a few entries, and
// never more than half of them: an empty feed empties no list.
const (
	defaultShare = 5
	defaultFew   = 3
)

// Removals returns how many entries of a list of this size a limit allows to remove. It returns false for a text that is
// no limit. A share is rounded down.
func Removals(limit string, size int) (most int, ok bool) {
	switch limit {
	case None:
		return 0, true
	case All:
		return size, true
	case Default:
		return max(size/defaultShare, min(defaultFew, size/2)), true
	}
	share, isShare := strings.CutSuffix(limit, "%")
	if share == "" || strings.Trim(share, "0123456789.") != "" || strings.HasPrefix(share, ".") || strings.HasSuffix(share, ".") {
		return 0, false // the package strconv takes more: signs, exponents, NaN
	}
	if isShare {
		exact, ok := new(big.Rat).SetString(share)
		if !ok || exact.Cmp(big.NewRat(100, 1)) > 0 {
			return 0, false
		}
		percent, _ := exact.Float64()
		const rounding = 1e-14 // of a share, as Share writes it: a third of 30 may be a little less than 10
		return int((percent/100 + rounding) * float64(size)), true
	}
	n, err := strconv.Atoi(share)
	return n, err == nil
}

// Share returns the limit that is a share from 0 to 1; of any other share, a text that is no limit.
func Share(share float64) string {
	if share > 1 {
		return "above 100%"
	}
	percent := math.Round(share*1e14) / 1e12 // 0.29 is 29 %, and not a little less
	return strconv.FormatFloat(percent, 'f', -1, 64) + "%"
}

// AllowRemovals returns two limits that allow to remove n of size entries: the number, and the smallest share in steps of
// 0.01 %.
func AllowRemovals(n, size int) (number, share string) {
	const steps = 10_000
	return strconv.Itoa(n), Share(float64((n*steps+size-1)/size) / steps)
}

// AnyWidth is the width that allows every range.
const AnyWidth = -1

// Additions bound what may be added.
type Additions struct {
	Most       int // entries
	WidestIPv4 int // prefix length of the widest range; AnyWidth allows all
	WidestIPv6 int
}

// Refused yields what the bounds do not allow of the added entries, with the option that says so. placeOf tells where an
// entry comes from.
func (a Additions) Refused(added []string, placeOf func(i int) string) iter.Seq2[string, string] {
	return func(yield func(option, reason string) bool) {
		nameOf := func(i int) string { return fmt.Sprintf("%s (%s)", redact.Line(added[i]), placeOf(i)) }
		if n := len(added); n > a.Most && !yield("MaxAdd", fmt.Sprintf(
			"%d entries would be added, for example %s, and at most %d may be; set MaxAdd to %d to allow it", n, nameOf(0), a.Most, n)) {
			return
		}
		for i, text := range added {
			for option, reason := range a.tooWide(ipset.Read(text).Prefix) {
				if !yield(option, nameOf(i)+reason) {
					return
				}
			}
		}
	}
}

// tooWide yields the bounds for which a range is too wide. An IPv6 range that contains the addresses of all IPv4 in IPv6
// is as wide as 0.0.0.0/0, because a service may match IPv4 clients in that form.
func (a Additions) tooWide(added netip.Prefix) iter.Seq2[string, string] {
	return func(yield func(option, reason string) bool) {
		switch {
		case !added.IsValid():
		case added.Addr().Is4():
			if added.Bits() < a.WidestIPv4 {
				yield("WidestIPv4", fmt.Sprintf(" would be added, and /%d is the widest IPv4 range that may be; %s",
					a.WidestIPv4, toAllow("WidestIPv4", added.Bits())))
			}
		default:
			if added.Bits() < a.WidestIPv6 && !yield("WidestIPv6", fmt.Sprintf(
				" would be added, and /%d is the widest IPv6 range that may be; %s", a.WidestIPv6, toAllow("WidestIPv6", added.Bits()))) {
				return
			}
			if a.WidestIPv4 > 0 && ipset.HoldsMappedIPv4(added) {
				yield("WidestIPv4", fmt.Sprintf(" would be added, it holds all IPv4 addresses in their IPv6 form, and /%d is the widest IPv4 "+
					"range that may be added; %s", a.WidestIPv4, toAllow("WidestIPv4", 0)))
			}
		}
	}
}

// toAllow says how to set a bound for a range of so many bits. 0 would be the default.
func toAllow(option string, bits int) string {
	if bits == 0 {
		bits = AnyWidth
	}
	return fmt.Sprintf("set %s to %d to allow it", option, bits)
}

// Places returns where each addition stands among the desired entries. One that is not there was merged from several.
func Places(add, desired []string) func(i int) string {
	places := sync.OnceValue(func() map[ipset.Meaning]int { // only for an error
		places := make(map[ipset.Meaning]int, len(desired))
		for i, text := range slices.Backward(desired) {
			places[ipset.Read(text).Meaning] = i
		}
		return places
	})
	return func(i int) string {
		if at, ok := places()[ipset.Read(add[i]).Meaning]; ok {
			return fmt.Sprintf("desired[%d]", at)
		}
		return "merged by Aggregate"
	}
}
