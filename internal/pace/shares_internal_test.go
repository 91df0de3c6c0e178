package pace

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/shares"
)

// BenchmarkShares measures processes that share the service's limit and nothing else. A purge is tried for an hour. With
// clocks=differ, each process has a clock of its own, and so other places.
func BenchmarkShares(b *testing.B) {
	for _, clocks := range []string{"agree", "differ"} {
		for _, crowd := range shares.Crowds() {
			b.Run(crowd.Name+"/clocks="+clocks, func(b *testing.B) {
				for range b.N {
					crowd.Run(inBubble(b), func(s *shares.Service, seed uint64) func() error {
						random := rand.New(rand.NewPCG(seed, 0))
						l := New()
						l.jitter = random.Float64
						if clocks == "differ" {
							l.clock = time.Duration(random.Int64N(int64(apart)))
						}
						return func() error { return purge(l, s) }
					}, b.ReportMetric)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// inBubble runs functions in bubbles, which benchmarks have none of.
func inBubble(b *testing.B) func(func()) {
	return func(simulate func()) {
		testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) {
			synctest.Test(t, func(*testing.T) { simulate() })
		}}})
	}
}

func purge(l *Limiter, s *shares.Service) error {
	c := &Caller{Patience: time.Hour}
	for {
		p, err := l.Acquire(context.Background(), c)
		if err != nil {
			return err
		}
		ok := s.Purge()
		p.End(time.Now())
		if ok {
			p.Accepted()
			return nil
		}
		if r := p.Refused(0); !r.Everybody {
			time.Sleep(r.Wait)
		}
	}
}
