package hostile

import "testing"

// BenchmarkUndisturbed measures how many purges per second leave if nothing slows them. With a limiter that follows the
// service's limit of two, the result cannot exceed two.
func BenchmarkUndisturbed(b *testing.B) {
	var sum float64
	for b.Loop() {
		o := run(b, scenario{name: "benchmark", plan: Plan{Protocol: HTTP1}})
		sum += rate(o.arrivals)
	}
	b.ReportMetric(sum/float64(b.N), "purges/s")
}
