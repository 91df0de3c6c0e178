package batch

// reporter keeps the statistics. It reports them in its own goroutine, so that a slow report delays nothing else.
// Requests that end during a report appear together in the next one.
type reporter struct {
	crew   *crew
	report func(Stats)
	state  func() Stats // state of the line; called with the lock of the queue

	accepted, requests int
	outage             outage
	changed            bool     // the statistics have changed since the last report began
	running            bool     // a report is running
	failed             *Failure // first panic or Goexit of a report
}

// countLocked records one request. The lock of the queue is held.
func (r *reporter) countLocked(accepted int) {
	r.requests++
	r.accepted += accepted
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
	now.Accepted, now.Requests, now.Failures, now.Err = r.accepted, r.requests, r.outage.failures, r.outage.err
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
