package batch

// reporter keeps the statistics, and reports them in a goroutine of its own, so that a report that takes long holds up
// nothing else. Of requests that end meanwhile it learns together.
type reporter struct {
	crew   *crew
	report func(Stats)
	state  func() Stats // of the line; the lock of the queue is held

	accepted, requests int
	failures           int      // in a row
	err                error    // of the last of these
	changed            bool     // since the last report began
	running            bool     // a report
	failed             *Failure // what a report did in place of returning, the first time
}

// countLocked notes one request. The lock of the queue is held.
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

// reportLocked reports until the newest statistics have been reported. The lock of the queue is held.
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
