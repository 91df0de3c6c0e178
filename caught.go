package webdelivery

import (
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// caught calls work and done as [usercode.Run] does, and redacts secrets in the errors. A transport may panic with
// the request that it sends.
func (f *funnel) caught(work func() error, done func(*failure)) {
	usercode.Run(work, func(err error) {
		var judged *failure
		usercode.Run(func() error {
			if err != nil {
				judged = judge(f.secrets.Caught(err))
			}
			return nil
		}, func(err error) { // from a method of the error
			if err != nil {
				judged = judge(f.secrets.Caught(err))
			}
			done(judged)
		})
	})
}

// failure is an error with what the SDK must know about it. The methods of an error may be code of the user (a
// limiter returns its own errors), which may panic or block. So they are called once, under no lock.
type failure struct {
	err     error
	text    string
	outcome Outcome
}

// judge calls the methods of an error. It returns nil for nil.
func judge(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{err, err.Error(), OutcomeOf(err)}
}

// cause returns the error itself, and nil for nil.
func (f *failure) cause() error {
	if f == nil {
		return nil
	}
	return f.err
}
