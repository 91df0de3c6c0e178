package webdelivery

import (
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// caught is [usercode.Run] for errors that reach the user. A transport may panic with the request that it sends, so they
// pass without secrets.
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

// failure is an error with what the SDK has to know of it. The methods of an error may be code of the user's (a limiter
// returns errors of its own), which may panic or block. So they are asked once, where that does no harm: under no lock.
type failure struct {
	err     error
	text    string
	outcome Outcome
}

// judge asks an error; nil of nil.
func judge(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{err, err.Error(), OutcomeOf(err)}
}

// cause is the error itself; nil of nil.
func (f *failure) cause() error {
	if f == nil {
		return nil
	}
	return f.err
}
