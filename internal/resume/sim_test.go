package resume_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/resume"
)

// world is a service and its events. Events arrive late, tie, and are deleted after three days. Responses break, have at
// most so many rows, and have ties in any order. The service draws the borders of a time range in one of four ways.
type world struct {
	random                       *rand.Rand
	events                       []event // in ascending order of their times
	start, now                   time.Time
	startExclusive, endInclusive bool
	most                         int  // rows of a response
	live                         bool // events arrive during a run

	run  *resume.Run
	got  map[string]int
	stop int // rows until the user stops; -1: never
}

type event struct {
	row

	arrival time.Time
}

func keptFrom(now time.Time) time.Time { return now.Truncate(24*time.Hour).AddDate(0, 0, -3) }

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 2)), startExclusive: seed&1 > 0, endInclusive: seed&2 > 0, got: map[string]int{}}
	w.most = []int{60, 1_000_000}[seed>>2&1]
	raster := []int64{1000, 250}[seed>>3&1] // milliseconds
	add := func(ms int64) {
		for range 1 + w.random.IntN(3) {
			e := event{row: row{ms: ms, name: fmt.Sprintf("%d%c", ms, 'a'+w.random.IntN(3))}}
			if e.arrival = e.at(); w.random.IntN(12) == 0 {
				e.arrival = e.at().Add(time.Duration(w.random.Int64N(int64(30 * time.Hour))))
			}
			w.events = append(w.events, e)
		}
	}
	for _, near := range []int64{-1000, -raster, 0, 0, raster, 1000} {
		add(near)
	}
	for day := range int64(9) {
		midnight := (day*24 + 12) * 3_600_000 // second is at noon
		for range 10 {
			begin := midnight + w.random.Int64N(86_395)*1000
			for range 1 + w.random.IntN(6) {
				add(begin + w.random.Int64N(4000/raster)*raster)
			}
		}
		for _, near := range []int64{-1000, -raster, 0, 0, raster, 1000} {
			if w.random.IntN(3) > 0 {
				add(midnight + near)
			}
		}
	}
	slices.SortStableFunc(w.events, func(a, b event) int { return cmp.Compare(a.ms, b.ms) })
	return w
}

// span returns what the service has of a span now.
func (w *world) span(from, to time.Time) (rows []row) {
	if kept := keptFrom(w.now); from.Before(kept) {
		from = kept.Add(-time.Nanosecond)
	}
	i, _ := slices.BinarySearchFunc(w.events, from, func(e event, at time.Time) int { return e.at().Compare(at) })
	for _, e := range w.events[i:] {
		at := e.at()
		if at.After(to) {
			break
		}
		if !e.arrival.After(w.now) && (!w.startExclusive || !at.Equal(from)) && (w.endInclusive || !at.Equal(to)) {
			rows = append(rows, e.row)
		}
	}
	return rows
}

func (w *world) Total(from, to time.Time) (total int64, first time.Time, err error) {
	if w.live {
		w.now = w.now.Add(time.Duration(w.random.Int64N(int64(2 * time.Second))))
	}
	if !from.Before(to) {
		return 0, first, errFinal
	}
	if w.random.IntN(8) == 0 {
		w.run.Arrived()
		return 0, first, errOutage
	}
	rows := w.span(from, to)
	if len(rows) > 0 {
		first = rows[0].at()
	}
	return int64(len(rows)), first, nil
}

func (w *world) Read(from time.Time, limit int64, replay *resume.Replay) (int64, error) {
	w.run.Arrived()
	if w.live {
		w.now = w.now.Add(time.Duration(w.random.Int64N(int64(2 * time.Second))))
	}
	rows := w.span(from, w.run.End)
	total := len(rows)
	rows = rows[:min(total, int(limit), w.most)]
	w.random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.ms, b.ms) })
	broken := w.random.IntN(4*len(rows) + 1)
	for i, r := range rows {
		if i == broken {
			return 0, errOutage
		}
		isNew, err := replay.Take(r.at(), r.sum())
		if err != nil {
			return 0, err
		}
		if isNew {
			w.got[r.name]++
			if w.stop--; w.stop == 0 {
				return 0, nil
			}
		}
	}
	if len(rows) < total {
		return int64(total), errUnusable
	}
	if left := replay.Left(w.run.End); left > 0 && !from.Before(keptFrom(w.now)) {
		return 0, fmt.Errorf("the response lacks %d rows", left)
	}
	return int64(total), nil
}

func (w *world) Stopped() bool              { return w.stop == 0 }
func (*world) Limit(total int64) int64      { return total + 1000 }
func (w *world) KeptFrom() time.Time        { return keptFrom(w.now.Add(time.Hour)) }
func (*world) Sleep(time.Duration) error    { return nil }
func (*world) Judge(err error) resume.Fault { return (&source{}).Judge(err) }

// export runs the export once, up to a time, and returns how many rows it reports as missing.
func (w *world) export(t *testing.T, p *resume.Position, end time.Time) (reported int64) {
	t.Helper()
	w.run = &resume.Run{Source: w, Position: p, Start: w.start, End: end}
	err := w.run.All()
	if late, ok := errors.AsType[*resume.MissingError](err); ok {
		return late.Missing
	}
	require.NoError(t, err)
	return 0
}

// An export runs for nine days. Each row comes once, or is reported once, in the first complete run after its arrival. If
// rows arrive during the runs, one may be reported and come later.
func TestNineDays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		w, p := newWorld(seed), &resume.Position{}
		if w.start = second; seed%3 == 0 {
			w.start = second.Add(12 * time.Hour) // midnight
		}
		w.live = seed%5 == 0
		reported := map[string]int{}
		var sum, wanted int64
		for w.now = second; w.now.Before(second.AddDate(0, 0, 11)); {
			w.now = w.now.Add(time.Duration(1+w.random.IntN(16)) * 30 * time.Minute)
			end := w.now.Add(-time.Duration(w.random.IntN(2)) * 5 * time.Minute)
			if i, _ := slices.BinarySearchFunc(w.events, w.now, func(e event, at time.Time) int { return e.at().Compare(at) }); i > 0 && w.random.IntN(3) == 0 {
				end = w.events[i-1].at().Truncate(time.Second) // an event is at the very end
			}
			if end.Before(p.Last()) || !end.After(w.start) {
				continue
			}
			w.stop = -1
			if w.random.IntN(4) == 0 {
				w.stop = 1 + w.random.IntN(30)
			}
			begin := w.now
			missing := w.export(t, p, end)
			p = stored(t, p)
			if w.Stopped() {
				require.Zero(t, missing)
				continue
			}
			from := keptFrom(w.now.Add(time.Hour))
			if from.Before(w.start) {
				from = w.start
			}
			there, want, finished := map[string]int{}, int64(0), w.now
			w.now = begin
			for _, r := range w.span(from, p.Last().Truncate(time.Second)) {
				there[r.name]++
			}
			for name, n := range there {
				late := n - w.got[name]
				want += max(0, int64(late-reported[name]))
				reported[name] = max(reported[name], late)
			}
			w.now, sum, wanted = finished, sum+missing, wanted+want
			if w.live {
				require.GreaterOrEqual(t, sum, wanted, "seed %d at %v, up to %v: %v", seed, w.now, end, p.Last())
			} else {
				require.Equal(t, want, missing, "seed %d at %v, up to %v: %v", seed, w.now, end, p.Last())
			}
		}
		require.Positive(t, sum)
		arrived := map[string]int{}
		for _, e := range w.events {
			arrived[e.name]++
		}
		for name, n := range w.got {
			require.LessOrEqual(t, n, arrived[name], "seed %d: %s", seed, name)
		}
		require.Equal(t, p.Rows(), count(w.got))
	}
}

func count(names map[string]int) (sum int64) {
	for _, n := range names {
		sum += int64(n)
	}
	return sum
}
