package webdelivery_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// addressBits is a range of the 64 addresses of 198.51.100.0/26, as the oracle of plans knows it: a set of addresses.
type addressBits uint64

// someRangeOf returns a random range, of 1 to 16 addresses, with one of its spellings.
func someRangeOf(r *rand.Rand) (b addressBits, text string) {
	narrow := r.IntN(5) // a range of 2^narrow addresses
	at := r.IntN(64)
	first := at >> narrow << narrow
	b = (1<<(1<<narrow) - 1) << first
	switch form := r.IntN(4); {
	case form == 0 && narrow == 0:
		return b, fmt.Sprintf("198.51.100.%d", at)
	case form == 1:
		return b, fmt.Sprintf("::ffff:198.51.100.%d/%d", at, 128-narrow)
	default:
		return b, fmt.Sprintf("198.51.100.%d/%d", at, 32-narrow)
	}
}

// someRanges returns up to n different ranges with their spellings.
func someRanges(r *rand.Rand, n int) map[addressBits]string {
	all := map[addressBits]string{}
	for range r.IntN(n + 1) {
		b, text := someRangeOf(r)
		if all[b] == "" {
			all[b] = text
		}
	}
	return all
}

func union(all map[addressBits]string) (set addressBits) {
	for b := range all {
		set |= b
	}
	return set
}

// Random plans are those of an oracle, which knows entries as sets of addresses, and so are their refusals. An Apply
// makes the list as planned and never fuller than allowed, and uncovers nothing that the plan does not announce. The
// plan can be applied again.
func TestRandomPlans(t *testing.T) {
	t.Parallel()
	const plans = 300
	applied, refused, full := 0, 0, 0
	for seed := range uint64(plans) {
		r := rand.New(rand.NewPCG(seed, 47))
		most := 8 + r.IntN(12)
		held, desired := someRanges(r, most), someRanges(r, most)
		for _, b := range slices.Sorted(maps.Keys(held)) {
			if r.IntN(2) == 0 && len(desired) < most { // half of the list stays
				desired[b] = held[b]
			}
		}
		texts := slices.Sorted(maps.Values(desired))
		never, neverText := someRangeOf(r)
		mostRemovals := r.IntN(15)
		options := webdelivery.PlanOptions{MaxAdd: 1 + r.IntN(15), MaxRemove: webdelivery.RemovalLimit(strconv.Itoa(mostRemovals))}
		if r.IntN(3) == 0 {
			if !strings.Contains(neverText, "/") {
				neverText += "/32"
			}
			options.Never = append(options.Never, netip.MustParsePrefix(neverText))
		} else {
			never = 0
		}

		// The oracle.
		var add, remove []addressBits
		wrong := map[string]bool{}
		for b := range desired {
			if held[b] == "" {
				add = append(add, b)
				wrong["Never"] = wrong["Never"] || b&never != 0
			}
		}
		for b := range held {
			if desired[b] == "" {
				remove = append(remove, b)
			}
		}
		wrong["MaxAdd"] = len(add) > options.MaxAdd
		wrong["MaxRemove"] = len(remove) > mostRemovals
		mayNotOpen := union(held) & union(desired)

		fixture.WithList(t, fixture.Setup{}, slices.Sorted(maps.Values(held)), func(f *fixture.Fixture) {
			announced := false
			client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
				Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := f.HTTP.Transport.RoundTrip(r)
					now := f.Srv.Entries(fixture.ListID)
					assert.LessOrEqual(f, len(now), max(most, len(held)), seed)
					if !announced {
						assert.Zero(f, mayNotOpen&^coveredBy(now), "seed %d", seed)
					}
					return resp, err
				}),
			})}}).Limited(most, 4)
			plan, err := client.NetworkLists.Plan(f.Context(), fixture.ListID, texts, options)
			for option, is := range wrong {
				if is {
					require.ErrorContains(f, err, "plan refused: "+option, "seed %d", seed)
				} else if err != nil {
					require.NotContains(f, err.Error(), option+":", "seed %d", seed)
				}
			}
			if refusal, ok := errors.AsType[*webdelivery.PlanError](err); ok {
				refused++
				require.True(f, wrong[refusal.Field], "seed %d: %v", seed, err)
				return
			}
			require.NoError(f, err, "seed %d", seed)
			var wantAdd, wantRemove, gone []string
			for _, b := range add {
				wantAdd = append(wantAdd, desired[b])
			}
			for _, b := range remove {
				wantRemove = append(wantRemove, held[b])
			}
			for _, e := range plan.Remove {
				gone = append(gone, e.Entry)
			}
			require.ElementsMatch(f, wantAdd, plan.Add, "seed %d", seed)
			require.ElementsMatch(f, wantRemove, gone, "seed %d", seed)
			require.Equal(f, len(held)-len(remove), plan.Keep)
			require.Equal(f, len(desired), plan.Size())
			if len(held)+len(add) <= most {
				require.Zero(f, plan.UncoveredDuringApply, "seed %d: there is room", seed)
			} else {
				full++
			}
			announced = plan.UncoveredDuringApply > 0
			for round := range 2 {
				result, err := client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.NoError(f, err, "seed %d", seed)
				require.Equal(f, len(desired), result.Size)
				require.Equal(f, [2]int{(1 - round) * len(add), (1 - round) * len(remove)}, [2]int{result.Added, result.Removed}, "seed %d", seed)
				require.Len(f, f.Srv.Entries(fixture.ListID), len(desired))
				require.Equal(f, union(desired), coveredBy(f.Srv.Entries(fixture.ListID)))
			}
			applied++
		})
	}
	t.Logf("%d applied, %d of them in a full list; %d refused", applied, full, refused)
	assert.Greater(t, applied, plans/4)
	assert.Greater(t, refused, plans/4)
	assert.Greater(t, full, plans/20)
}

// coveredBy returns the addresses that a list covers, by reading each text's last number and length.
func coveredBy(texts []string) (set addressBits) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr := netip.MustParseAddr(text)
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		narrow := p.Addr().BitLen() - p.Bits()
		bytes := p.Addr().AsSlice()
		first := int(bytes[len(bytes)-1]) >> narrow << narrow
		set |= (1<<(1<<narrow) - 1) << first
	}
	return set
}
