package batch

// outage counts the failed requests in a row. Requests overlap, so the order of their beginnings decides: a request
// that ends late says nothing about those that began after it.
type outage struct {
	begun    int         // number of the newest request
	answered int         // number of the newest request that was answered
	failed   int         // number of the newest request that failed
	failures int         // failed requests that began after answered
	err      error       // error of failed; nil if failures is 0
	open     map[int]int // requests that have not ended, and how many that began later have failed
}

// begin returns the number of a new request. Each request ends with answer, fail or forget; further ends of it do
// nothing.
func (o *outage) begin() int {
	o.begun++
	o.open[o.begun] = 0
	return o.begun
}

// answer ends a request that was answered.
func (o *outage) answer(request int) {
	later, open := o.open[request]
	delete(o.open, request)
	if !open || request < o.answered {
		return
	}
	o.answered, o.failures = request, later
	if later == 0 {
		o.err = nil
	}
}

// fail ends a request that failed.
func (o *outage) fail(request int, err error) {
	if _, open := o.open[request]; !open {
		return
	}
	delete(o.open, request)
	for other := range o.open {
		if other < request {
			o.open[other]++
		}
	}
	if request < o.answered {
		return
	}
	o.failures++
	if request > o.failed {
		o.failed, o.err = request, err
	}
}

// forget ends a request that says nothing about the service.
func (o *outage) forget(request int) { delete(o.open, request) }
