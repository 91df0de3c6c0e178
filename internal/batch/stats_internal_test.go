package batch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The order in which requests began decides whether there is an outage. A plus means that a request was answered,
// and a minus that it failed.
func TestOutage(t *testing.T) {
	t.Parallel()
	type end struct {
		how     byte
		request int
	}
	errs := []error{0: nil, 1: errors.New("1"), 2: errors.New("2"), 3: errors.New("3"), 4: errors.New("4")}
	for name, tt := range map[string]struct {
		ends     []end
		failures int
		err      error
	}{
		"none":                           {nil, 0, nil},
		"one":                            {[]end{{'-', 1}}, 1, errs[1]},
		"several":                        {[]end{{'-', 1}, {'-', 2}, {'-', 3}}, 3, errs[3]},
		"the last answer counts":         {[]end{{'-', 1}, {'-', 2}, {'+', 3}}, 0, nil},
		"after an answer":                {[]end{{'+', 1}, {'-', 2}}, 1, errs[2]},
		"an old failure comes late":      {[]end{{'+', 2}, {'+', 3}, {'-', 1}}, 0, nil},
		"an old answer comes late":       {[]end{{'-', 2}, {'-', 3}, {'+', 1}}, 2, errs[3]},
		"an older answer comes late":     {[]end{{'-', 3}, {'+', 2}, {'+', 1}}, 1, errs[3]},
		"between failures":               {[]end{{'-', 1}, {'-', 3}, {'-', 4}, {'+', 2}}, 3, errs[4]},
		"failures in the reverse order":  {[]end{{'-', 3}, {'-', 2}, {'-', 1}}, 3, errs[3]},
		"an old failure beside newer":    {[]end{{'-', 3}, {'+', 2}, {'-', 1}}, 1, errs[3]},
		"a failure in the middle":        {[]end{{'+', 1}, {'-', 4}, {'-', 2}, {'+', 3}}, 2, errs[4]},
		"a failure behind an old answer": {[]end{{'+', 1}, {'-', 3}, {'+', 2}, {'-', 4}}, 2, errs[4]},
	} {
		var o statistics
		for i := range 4 {
			assert.Equal(t, i+1, o.begin())
		}
		for _, e := range tt.ends {
			switch e.how {
			case '+':
				o.answer(e.request)
			default:
				o.fail(e.request, errs[e.request])
			}
		}
		assert.Equal(t, tt.failures, o.Failures, name)
		assert.Equal(t, tt.err, o.Err, name)
	}
}
