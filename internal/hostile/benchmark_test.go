package hostile

import "testing"

// BenchmarkUndisturbed measures how many purges per second leave when nothing stands in their way. A limiter that keeps
// to the service's two cannot reach more than two.
func BenchmarkUndisturbed(b *testing.B) {
	var sum float64
	for b.Loop() {
		o := run(b, scenario{name: "benchmark", plan: Plan{Protocol: HTTP1}})
		sum += rate(o.arrivals)
	}
	b.ReportMetric(sum/float64(b.N), "purges/s")
}
