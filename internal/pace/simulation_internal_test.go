package pace

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simulation has several processes that do not know each other. Each one sends its purges one after the other, for the
// same customer and with its own Limiter. The service refuses more than two in a second. Time is simulated.
type simulation struct {
	clients      int
	purges       int           // per process; 0: until the end
	countRefused bool          // whether refused purges count against the limit too
	until        time.Duration // 0: until all purges are accepted
}

type simulated struct {
	accepted, refused int
	longest, all      time.Duration // longest single purge; total time
	perClient         []int
}

type event struct {
	at     time.Time
	client int
}

type events []event

func (e *events) Len() int           { return len(*e) }
func (e *events) Less(i, j int) bool { return (*e)[i].at.Before((*e)[j].at) }
func (e *events) Swap(i, j int)      { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *events) Push(x any)         { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s simulation) run(seed uint64) simulated {
	random := rand.New(rand.NewPCG(seed, 1))
	start := time.Unix(1_800_000_000, 0)
	limiters, callers := make([]*Limiter, s.clients), make([]*Caller, s.clients)
	began := make([]time.Time, s.clients)
	result := simulated{perClient: make([]int, s.clients)}
	queue := &events{}
	for i := range limiters {
		limiters[i] = New()
		limiters[i].jitter = random.Float64
		callers[i] = &Caller{}
		began[i] = start
		heap.Push(queue, event{start.Add(time.Duration(random.Int64N(int64(time.Millisecond)))), i})
	}
	var counted []time.Time // arrivals in the last second
	for queue.Len() > 0 {
		e := heap.Pop(queue).(event)
		l, now := limiters[e.client], e.at
		if s.until > 0 && now.Sub(start) > s.until {
			break
		}
		permit, wait := l.take(callers[e.client], now)
		if permit == nil {
			heap.Push(queue, event{now.Add(wait), e.client})
			continue
		}
		arrived := now.Add(time.Duration(5+random.IntN(20)) * time.Millisecond)
		answered := arrived.Add(10 * time.Millisecond)
		counted = slices.DeleteFunc(counted, func(at time.Time) bool { return arrived.Sub(at) >= time.Second })
		taken := len(counted) < 2
		if taken || s.countRefused {
			counted = append(counted, arrived)
		}
		l.places[permit.place] = answered.Add(Hold)
		l.flying--
		if taken {
			l.accept(answered)
			callers[e.client] = &Caller{}
			result.accepted++
			result.perClient[e.client]++
			result.longest = max(result.longest, answered.Sub(began[e.client]))
			result.all = max(result.all, answered.Sub(start))
			began[e.client] = answered
			if s.purges > 0 && result.perClient[e.client] == s.purges {
				continue
			}
		} else {
			l.refuse(permit, answered, 0)
			result.refused++
		}
		heap.Push(queue, event{answered, e.client})
	}
	return result
}

func (r simulated) share() float64 { return float64(r.refused) / float64(max(1, r.refused+r.accepted)) }

// quantiles returns the median and the 99th percentile.
func quantiles[T interface{ ~int64 | ~float64 }](values []T) (median, most T) {
	slices.Sort(values)
	return values[len(values)/2], values[len(values)*99/100]
}

// Eight processes start 15 purges each at the same moment; the service refuses with a bare 503. No purge is lost, and
// the bounds hold in each of 200 runs, whether refused purges count against the limit or not.
func TestSharesOfEightProcesses(t *testing.T) {
	t.Parallel()
	for _, counted := range []bool{true, false} {
		for seed := range uint64(200) {
			r := simulation{clients: 8, purges: 15, countRefused: counted}.run(seed)
			require.Equal(t, 8*15, r.accepted)
			assert.LessOrEqual(t, r.share(), 0.38, "refused, seed %d", seed)
			assert.LessOrEqual(t, r.longest, 120*time.Second, "the longest purge, seed %d", seed)
			assert.LessOrEqual(t, r.all, 260*time.Second, "all of it, seed %d", seed)
		}
	}
}

// BenchmarkShares prints the throughput of processes that do not know each other. In the first part, 200 runs, each
// process starts 15 purges at the same moment. The second part is a continuous load over 900 s, in purges per second.
func BenchmarkShares(b *testing.B) {
	const runs = 200
	for _, clients := range []int{1, 2, 4, 8, 16} {
		for _, counted := range []bool{true, false} {
			b.Run(fmt.Sprintf("clients=%d/refused-count=%t", clients, counted), func(b *testing.B) {
				for b.Loop() {
					var all, longest []time.Duration
					var refused, rate []float64
					for seed := range uint64(runs) {
						r := simulation{clients: clients, purges: 15, countRefused: counted}.run(seed)
						all, longest, refused = append(all, r.all), append(longest, r.longest), append(refused, 100*r.share())
						r = simulation{clients: clients, until: 900 * time.Second, countRefused: counted}.run(seed)
						rate = append(rate, float64(r.accepted)/900)
					}
					report := func(unit string, median, most float64) {
						b.ReportMetric(median, unit)
						b.ReportMetric(most, unit+"-99%")
					}
					median, most := quantiles(all)
					report("s-all", median.Seconds(), most.Seconds())
					median, most = quantiles(longest)
					report("s-longest", median.Seconds(), most.Seconds())
					low, high := quantiles(refused)
					report("%-refused", low, high)
					low, _ = quantiles(rate)
					b.ReportMetric(low, "accepted/s")
					b.ReportMetric(0, "ns/op")
				}
			})
		}
	}
}
