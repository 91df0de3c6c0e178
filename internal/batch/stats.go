package batch

// reporter keeps the statistics. It reports them in its own goroutine, so that a slow report delays nothing else.
// Requests that end during a report appear together in the next one.
type reporter struct {
	crew   *crew
	report func(Stats)
	state  func() Stats // state of the line; called with the lock of the queue

	accepted, requests int
	failures           int      // failed requests in a row
	err                error    // error of the last of them
	changed            bool     // the statistics have changed since the last report began
	running            bool     // a report is running
	failed             *Failure // first panic or Goexit of a report
}

// countLocked records one request. The lock of the queue is held.
func (r *reporter) countLocked(accepted int) {
	r.requests++
	r.accepted += accepted
}

// noteLocked notes why a request was not answered, or could not be sent; nil if it was answered. The lock of the queue is
// held.
func (r *reporter) noteLocked(failed error) {
	r.failures++
	if r.err = failed; failed == nil {
		r.failures = 0
	}
}

// changedLocked reports that something has changed. The lock of the queue is held.
func (r *reporter) changedLocked() {
	if r.changed = r.report != nil; r.changed && !r.running {
		r.running = true
		r.reportLocked()
	}
}

// reportLocked starts reports until the newest statistics have been reported. The lock of the queue is held.
func (r *reporter) reportLocked() {
	r.changed = false
	now := r.state()
	now.Accepted, now.Requests, now.Failures, now.Err = r.accepted, r.requests, r.failures, r.err
	r.crew.startLocked(func() error {
		r.report(now)
		return nil
	}, func(failed *Failure) {
		if r.failed == nil {
			r.failed = failed
		}
		if r.running = r.changed; r.running {
			r.reportLocked()
		}
	})
}
