package lists

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Named removal limits. Any other limit is a number, or a share with a percent sign.
const (
	None    = "none"
	All     = "all"
	Default = "default"
)

// The default limit allows a fifth of the entries. A fifth of a small list may be less than one entry, so there the
// limit is a few entries. It is never more than half of them, because an empty feed must not empty a list.
const (
	defaultShare = 5
	defaultFew   = 3
)

// Removals returns how many of size entries a limit allows to remove. A share is rounded down. It returns false if the
// text is not a limit.
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
		return 0, false // strconv would also accept signs, exponents and NaN
	}
	if isShare {
		exact, ok := new(big.Rat).SetString(share)
		if !ok || exact.Cmp(big.NewRat(100, 1)) > 0 {
			return 0, false
		}
		percent, _ := exact.Float64()
		const rounding = 1e-14 // the precision of Share: without it, a third of 30 could become 9
		return int((percent/100 + rounding) * float64(size)), true
	}
	n, err := strconv.Atoi(share)
	return n, err == nil
}

// Share returns the limit for a share from 0 to 1. For any other share it returns a text that Removals refuses.
func Share(share float64) string {
	if share > 1 {
		return "above 100%"
	}
	percent := math.Round(share*1e14) / 1e12 // rounds away the error of binary fractions: 0.29 is exactly 29 %
	return strconv.FormatFloat(percent, 'f', -1, 64) + "%"
}

// AllowRemovals returns two limits that allow removing n of size entries: n itself, and the smallest sufficient share
// in steps of 0.01 %.
func AllowRemovals(n, size int) (number, share string) {
	const steps = 10_000
	return strconv.Itoa(n), Share(float64((n*steps+size-1)/size) / steps)
}

// AnyWidth allows every range.
const AnyWidth = -1

// Additions are the limits for added entries.
type Additions struct {
	Most       int // entries
	WidestIPv4 int // prefix length of the widest allowed range; AnyWidth allows all
	WidestIPv6 int
}

// Refused yields each violation of the limits as the name of the option and a reason. place returns where an added entry
// comes from.
func (a Additions) Refused(added []Entry, place func(i int) string) iter.Seq2[string, string] {
	return func(yield func(option, reason string) bool) {
		name := func(i int) string { return fmt.Sprintf("%s (%s)", redact.Line(added[i].Text), place(i)) }
		if n := len(added); n > a.Most && !yield("MaxAdd", fmt.Sprintf(
			"%d entries would be added, for example %s, but at most %d are allowed; set MaxAdd to %d to allow it", n, name(0), a.Most, n)) {
			return
		}
		for i, e := range added {
			for option, reason := range a.tooWide(e.Prefix) {
				if !yield(option, name(i)+reason) {
					return
				}
			}
		}
	}
}

// tooWide yields the limits that a range exceeds. An IPv6 range that contains the IPv6 form of every IPv4 address
// counts as 0.0.0.0/0, because a service may match IPv4 clients in that form.
func (a Additions) tooWide(added netip.Prefix) iter.Seq2[string, string] {
	return func(yield func(option, reason string) bool) {
		switch {
		case !added.IsValid():
		case added.Addr().Is4():
			if added.Bits() < a.WidestIPv4 {
				yield("WidestIPv4", fmt.Sprintf(" would be added, but the widest allowed IPv4 range is /%d; %s",
					a.WidestIPv4, toAllow("WidestIPv4", added.Bits())))
			}
		default:
			if added.Bits() < a.WidestIPv6 && !yield("WidestIPv6", fmt.Sprintf(
				" would be added, but the widest allowed IPv6 range is /%d; %s", a.WidestIPv6, toAllow("WidestIPv6", added.Bits()))) {
				return
			}
			if a.WidestIPv4 > 0 && added.Bits() <= mappedIPv4.Bits() && added.Contains(mappedIPv4.Addr()) {
				yield("WidestIPv4", fmt.Sprintf(" would be added. It contains all IPv4 addresses in their IPv6 form, but the widest allowed "+
					"IPv4 range is /%d; %s", a.WidestIPv4, toAllow("WidestIPv4", 0)))
			}
		}
	}
}

// toAllow says how to set an option so that it allows this prefix length. It writes AnyWidth for 0, which would mean
// the default.
func toAllow(option string, bits int) string {
	if bits == 0 {
		bits = AnyWidth
	}
	return fmt.Sprintf("set %s to %d to allow it", option, bits)
}
