package resume_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/resume"
)

var (
	errOutage   = errors.New("outage")
	errUnusable = errors.New("unusable")
	errFinal    = errors.New("final")
)

// answer is the response of a source to one request.
type answer struct {
	total int64
	rows  []row
	err   error
	after time.Duration // duration of the request
}

// source gives one answer after the other, and repeats the last one.
type source struct {
	answers  []answer
	requests []string
	run      *resume.Run
	most     int // rows that the user wants
	got      []string
	kept     time.Time
	slept    time.Duration
}

func (s *source) next(request string) answer {
	a := s.answers[min(len(s.requests), len(s.answers)-1)]
	s.requests = append(s.requests, request)
	time.Sleep(a.after)
	return a
}

func (s *source) Total(from, to time.Time) (total int64, first time.Time, err error) {
	a := s.next(fmt.Sprintf("total %s %s", from.Format("05"), to.Format("05")))
	return a.total, first, a.err
}

func (s *source) Read(from time.Time, limit int64, replay *resume.Replay) (int64, error) {
	a := s.next(fmt.Sprintf("read %s %d", from.Format("05"), limit))
	for _, r := range a.rows {
		s.run.Arrived()
		isNew, err := replay.Take(r.at(), r.sum())
		if err != nil {
			return 0, err
		}
		if isNew {
			s.got = append(s.got, r.name)
		}
		if s.Stopped() {
			return 0, nil
		}
	}
	return a.total, a.err
}

func (s *source) Stopped() bool           { return len(s.got) == s.most }
func (s *source) Limit(total int64) int64 { return total + 10 }
func (s *source) KeptFrom() time.Time     { return s.kept }
func (s *source) Sleep(d time.Duration) error {
	s.slept += d
	time.Sleep(d)
	return nil
}

func (s *source) Judge(err error) resume.Fault {
	switch {
	case errors.Is(err, errOutage):
		return resume.Outage
	case errors.Is(err, errUnusable):
		return resume.Unusable
	default:
		return resume.Final
	}
}

// The requests of a run, and its result.
func TestRuns(t *testing.T) {
	t.Parallel()
	a, b, c, late := row{1000, "a"}, row{2500, "b"}, row{9000, "c"}, row{1500, "late"}
	d := row{9100, "d"}
	down, bad := answer{err: errOutage}, answer{err: errUnusable}
	for name, tc := range map[string]struct {
		answers  []answer
		most     int
		kept     time.Time
		got      []string
		requests []string // the first ones
		err      error
		count    int // of requests; 0: as many as requests
		within   time.Duration
	}{
		"one response": {
			answers: []answer{{total: 2}, {rows: []row{a, b}}}, got: []string{"a", "b"}, requests: []string{"total 00 59", "read 00 12"},
		},
		"nothing": {answers: []answer{{}}, requests: []string{"total 00 59"}},
		"a break": {
			answers: []answer{{total: 3}, {rows: []row{a, b}, err: errOutage}, {rows: []row{a, b, c}}, {total: 2}}, got: []string{"a", "b", "c"},
			requests: []string{"total 00 59", "read 00 13", "read 00 13", "total 00 09"}, within: time.Second,
		},
		"a break, and a larger total": {
			answers: []answer{{total: 1}, {rows: []row{a, b}, total: 500, err: errUnusable}, {rows: []row{a, b, c}}, {total: 2}},
			got:     []string{"a", "b", "c"}, requests: []string{"total 00 59", "read 00 11", "read 00 510", "total 00 09"},
		},
		"the user has enough": {answers: []answer{{total: 3}, {rows: []row{a, b, c}}}, most: 2, got: []string{"a", "b"}, requests: []string{"total 00 59", "read 00 13"}},
		"a late row, found by reading on": {
			answers: []answer{{total: 2}, {rows: []row{a, b}, err: errOutage}, {rows: []row{a, b}}, {total: 2}, {total: 3}, {rows: []row{a, late, b}}, {total: 2}},
			got:     []string{"a", "b", "late"}, requests: []string{"total 00 59", "read 00 12", "read 00 12", "total 00 02", "total 01 59", "read 00 13", "total 00 02"},
		},
		"a late row that is not found": {
			answers: []answer{{total: 2}, {rows: []row{a, d}, err: errOutage}, {rows: []row{d}}, {total: 2}, {total: 1}, {rows: []row{d}}, {total: 2}},
			got:     []string{"a", "d"}, count: 7, err: &resume.MissingError{Missing: 1},
		},
		"a source that counts rows at the end of a span": {
			answers: []answer{{total: 2}, {rows: []row{a, c}, err: errOutage}, {rows: []row{c}}, {total: 2}, {total: 1}}, got: []string{"a", "c"},
			requests: []string{"total 00 59", "read 00 12", "read 07 12", "total 00 09", "total 08 09"},
		},
		"a late row before a full second": {
			answers: []answer{
				{total: 2}, {rows: []row{a, c}, err: errOutage}, {rows: []row{c}}, {total: 2}, {total: 0}, {total: 1}, {rows: []row{c}}, {total: 2}, {total: 0},
			},
			got: []string{"a", "c"}, count: 9, err: &resume.MissingError{Missing: 1},
		},
		"rows that were announced do not come": {
			answers: []answer{{total: 9}, {rows: []row{a, b}, err: errOutage}, {rows: []row{a, b}}, {total: 2}, {rows: []row{a, b}}},
			got:     []string{"a", "b"}, count: 7, err: &resume.MissingError{Missing: 7},
		},
		"rows of before the retention": {
			answers: []answer{{total: 2}, {rows: []row{a, c}, err: errOutage}, {rows: []row{c}}, {total: 9}}, kept: second.AddDate(0, 0, 1),
			got: []string{"a", "c"}, requests: []string{"total 00 59", "read 00 12", "read 07 12"},
		},
		"the first request fails":      {answers: []answer{down}, err: errOutage, count: 1},
		"the first response fails":     {answers: []answer{{total: 2}, down}, err: errOutage, count: 2},
		"down for a while":             {answers: []answer{{total: 3}, {rows: []row{a}, err: errOutage}, down, down, down, down, down, down, {rows: []row{a, b, c}}, {total: 2}}, got: []string{"a", "b", "c"}, count: 10},
		"down for ever":                {answers: []answer{{total: 3}, {rows: []row{a}, err: errOutage}, down}, got: []string{"a"}, err: errOutage, count: -1, within: 5*time.Minute + 6*time.Second},
		"refused later":                {answers: []answer{{total: 3}, {rows: []row{a}, err: errOutage}, {err: errFinal}}, got: []string{"a"}, err: errFinal, count: 3},
		"refused behind a row":         {answers: []answer{{total: 3}, {rows: []row{a}, err: errFinal}}, got: []string{"a"}, err: errFinal, count: 2},
		"unusable for a while":         {answers: []answer{{total: 3}, {rows: []row{a}, err: errUnusable}, bad, bad, bad, {rows: []row{a, b, c}}, {total: 2}}, got: []string{"a", "b", "c"}, count: 7},
		"unusable for ever":            {answers: []answer{{total: 3}, {rows: []row{a}, err: errUnusable}, bad}, got: []string{"a"}, err: errUnusable, count: 6},
		"unusable after a long outage": {answers: []answer{{total: 3}, {rows: []row{a}, err: errOutage}, down, down, down, down, down, down, down, bad}, got: []string{"a"}, err: errUnusable, count: 13},
		"patience after a long response": {
			answers: []answer{{total: 3}, {rows: []row{a}, err: errOutage, after: time.Hour}, down, down, {rows: []row{a, b, c}}, {total: 2}}, got: []string{"a", "b", "c"}, count: 6,
		},
		"not ascending": {answers: []answer{{total: 2}, {rows: []row{b, a}}}, got: []string{"b"}, err: resume.ErrNotAscending, count: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{answers: tc.answers, most: tc.most, kept: tc.kept}
				if s.most == 0 {
					s.most = -1
				}
				s.run = &resume.Run{Source: s, Position: &resume.Position{}, Start: second, End: second.Add(59 * time.Second)}
				err := s.run.All()
				if tc.err == nil {
					require.NoError(t, err)
				} else if missing := (*resume.MissingError)(nil); errors.As(tc.err, &missing) {
					require.Equal(t, tc.err, err)
				} else {
					require.ErrorIs(t, err, tc.err)
				}
				assert.Equal(t, tc.got, s.got)
				switch {
				case tc.requests != nil:
					assert.Equal(t, tc.requests, s.requests)
				case tc.count > 0:
					assert.Len(t, s.requests, tc.count)
				default:
					assert.Greater(t, len(s.requests), 30)
				}
				if tc.within > 0 {
					assert.LessOrEqual(t, s.slept, tc.within)
				}
			})
		})
	}
}

// A late row is reported only once, also across runs. A further late row is reported again.
func TestALateRowIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, c := row{1000, "a"}, row{9100, "c"}
		p := &resume.Position{}
		missing := func(total int64) int64 {
			s := &source{most: -1, answers: []answer{{total: 1}, {rows: []row{c}}, {total: total}, {total: 1}, {rows: []row{c}}, {total: total}}}
			s.run = &resume.Run{Source: s, Position: p, Start: second, End: second.Add(59 * time.Second)}
			err := s.run.All()
			p = stored(t, p)
			if err == nil {
				return 0
			}
			late := new(resume.MissingError)
			require.ErrorAs(t, err, &late)
			require.EqualError(t, err, fmt.Sprintf("%d rows arrived late", late.Missing))
			return late.Missing
		}
		read(t, p, a, c)
		assert.Equal(t, []int64{0, 1, 0, 2, 0}, []int64{missing(1), missing(2), missing(2), missing(4), missing(4)})
	})
}
