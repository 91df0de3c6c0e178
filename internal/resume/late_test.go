package resume_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/resume"
)

// world is a source whose rows appear late, and everything that was delivered of it.
type world struct {
	*testing.T
	*rand.Rand

	rows          []recorded // in ascending order of their times
	wholeSeconds  bool       // it compares seconds
	startExcluded bool
	endIncluded   bool
	replicas      time.Duration // some responses are so old
	cuts          int           // one response in so many is cut

	start    time.Time // of the export, in inBorders
	position *resume.Position
	stop     int // after so many new rows
	stopped  bool
	requests int
	got      map[string]int
}

type recorded struct {
	at, visible time.Time
	name        string
}

func (w *world) between(from, to int64) (rows []recorded) {
	now, kept := time.Now(), time.Unix(w.KeptFrom(), 0).Add(-time.Hour)
	if w.replicas > 0 && w.IntN(4) == 0 {
		now = now.Add(-w.replicas)
	}
	for _, r := range w.rows {
		at := r.at
		if w.wholeSeconds {
			at = at.Truncate(time.Second)
		}
		after := at.After(time.Unix(from, 0)) || !w.startExcluded && at.Equal(time.Unix(from, 0))
		before := at.Before(time.Unix(to, 0)) || w.endIncluded && at.Equal(time.Unix(to, 0))
		if after && before && !r.visible.After(now) && !r.at.Before(kept) {
			rows = append(rows, r)
		}
	}
	for i := range rows { // ties come in any order
		if j := w.IntN(len(rows)); rows[i].at.Equal(rows[j].at) {
			rows[i], rows[j] = rows[j], rows[i]
		}
	}
	return rows
}

func (w *world) Total(from, to int64) (total int64, first time.Time, err error) {
	w.requests++
	rows := w.between(from, to)
	if len(rows) > 0 {
		first = rows[0].at
	}
	return int64(len(rows)), first, nil
}

var errCut = errors.New("cut")

func (w *world) Read(from, to, limit int64, replay *resume.Replay) (total int64, err error) {
	w.requests++
	rows := w.between(from, to)
	total = int64(len(rows))
	rows = rows[:min(limit, total)]
	cut := math.MaxInt
	if w.cuts > 0 && w.IntN(w.cuts) == 0 {
		cut = w.IntN(len(rows) + 1)
	}
	for i, r := range rows {
		if i == cut {
			return 0, errCut
		}
		isNew, err := replay.Take(r.at, sumOf(r.key()))
		if err != nil {
			return 0, err
		}
		if isNew {
			w.got[r.key()]++
			if w.stop--; w.stop == 0 {
				w.stopped = true
				return 0, resume.ErrStopped
			}
		}
	}
	if total > limit {
		return total, errCut
	}
	if replay.Lacking > 0 && from >= w.KeptFrom() {
		return 0, fmt.Errorf("%d rows are gone", replay.Lacking)
	}
	return total, nil
}

func (w *world) Limit(total int64) int64  { return total + total/100 + 3 }
func (w *world) Judge(error) resume.Fault { return resume.Outage }
func (w *world) Sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

func (w *world) KeptFrom() int64 {
	return time.Now().UTC().Add(time.Hour).Truncate(24*time.Hour).AddDate(0, 0, -3).Unix()
}

func (r recorded) key() string { return r.at.Format(time.RFC3339Nano) + " " + r.name }

// inBorders runs a test with sources of all borders, which compare whole seconds or do not.
func inBorders(t *testing.T, start time.Time, test func(w *world)) {
	t.Helper()
	for i := range 8 {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(start))
			test(&world{
				T: t, Rand: rand.New(rand.NewPCG(1, 1)), got: map[string]int{}, position: &resume.Position{}, start: start,
				startExcluded: i&1 > 0, endIncluded: i&2 > 0, wholeSeconds: i&4 > 0,
			})
		})
	}
}

// round reads up to a time after the start, and returns what is missing.
func (w *world) round(end, lookback time.Duration) resume.Missing {
	w.Helper()
	slices.SortStableFunc(w.rows, func(a, b recorded) int { return a.at.Compare(b.at) })
	w.position.Start, w.requests = w.start, 0
	time.Sleep(time.Until(w.start.Add(end)))
	run := resume.Run{Source: w, Position: w.position, End: w.start.Add(end).Unix(), Lookback: lookback, Few: 10_000, Arrived: true}
	missing, err := run.All()
	require.NoError(w, err)
	return missing
}

// add adds rows at a time after the start and half a second later.
func (w *world) add(after, late time.Duration) {
	for _, at := range []time.Time{w.start.Add(after), w.start.Add(after + time.Second/2)} {
		w.rows = append(w.rows, recorded{at, at.Add(late), strconv.Itoa(len(w.rows))})
	}
}

// A run learns what a source counts at the borders of a span: then a round takes no more requests than with a source that
// counts nothing there, and finds late rows.
func TestBordersAreLearnt(t *testing.T) {
	t.Parallel()
	inBorders(t, second, func(w *world) {
		for i := range 240 {
			w.add(time.Duration(1+i)*time.Second, 0)
		}
		w.round(60*time.Second, 20*time.Second)
		w.round(90*time.Second, 20*time.Second)
		for _, end := range []time.Duration{120 * time.Second, 150 * time.Second} {
			w.round(end, 20*time.Second)
			assert.Equal(w, 4, w.requests)
		}
		w.add(142*time.Second+time.Second/4, 10*time.Second)
		w.round(160*time.Second, 20*time.Second)
		w.round(240*time.Second, 20*time.Second)
		for _, r := range w.rows[:480] { // up to that of the end
			assert.Equal(w, 1, w.got[r.key()], r.key())
		}
	})
}

// Rows later than Lookback are reported once, with their day, also if the source omits those of midnight, or counts those at
// the end of a span and has not shown that.
func TestTheDayOfLateRows(t *testing.T) {
	t.Parallel()
	inBorders(t, second, func(w *world) {
		const day = 24 * time.Hour
		for at := time.Minute; at < 5*day; at += time.Minute {
			w.add(at, 0)
		}
		assert.Zero(w, w.round(4*day+30*time.Second, 59*time.Second))
		w.add(2*day+time.Second*90/2, 2*day-time.Hour)
		w.add(2*day+time.Second*90/2, 2*day+time.Hour)
		missing := w.round(4*day+2*time.Hour+30*time.Second, 59*time.Second)
		midnight := second.Truncate(day)
		assert.Equal(w, resume.Missing{Late: 4, From: midnight.Add(2 * day).Unix(), To: midnight.Add(3 * day).Unix()}, missing)
		assert.Zero(w, w.round(4*day+3*time.Hour+30*time.Second, 59*time.Second))
	})
}

// Rows that appear up to Lookback late come once, others are reported once, whatever a source's borders are, and however
// often its responses are cut, its replicas lag and the process is killed. WEBDELIVERY_WORLDS is another number of worlds.
func TestLateRowsComeOnce(t *testing.T) {
	t.Parallel()
	worlds, _ := strconv.ParseUint(os.Getenv("WEBDELIVERY_WORLDS"), 10, 64)
	for seed := range max(worlds, 25) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
	}
}

func simulate(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 46))
	minute := time.Minute
	if random.IntN(4) == 0 {
		minute = 20 * time.Minute // some days, so that the source drops rows
	}
	delay, lookback, step, span := 5*minute, 20*minute, 7*minute, 300*minute
	w := &world{T: t, Rand: random, got: map[string]int{}, position: &resume.Position{}}
	w.wholeSeconds, w.startExcluded, w.endIncluded = random.IntN(3) == 0, random.IntN(2) == 0, random.IntN(2) == 0
	w.cuts = []int{0, 3, 2}[random.IntN(3)]
	w.replicas = []time.Duration{0, 0, 20 * time.Second}[random.IntN(3)]
	few := []int64{1, 5, 50, 10_000}[random.IntN(4)]
	begin := time.Date(2026, 11, 20, random.IntN(24), random.IntN(60), 0, 0, time.UTC)
	time.Sleep(time.Until(begin))
	tooLate := 0
	for range []int{3, 100, 400}[random.IntN(3)] {
		units := []time.Duration{time.Millisecond, time.Second, 250 * time.Millisecond, time.Minute}
		at := begin.Add(time.Duration(random.Int64N(int64(span)))).Truncate(units[random.IntN(len(units))]) // some in the same instant
		r := recorded{at: at, visible: at, name: string(rune('a' + random.IntN(3)))}
		switch random.IntN(20) {
		case 0:
			r.visible = at.Add(delay + lookback + 30*minute) // in no round that looks back
			tooLate++
		case 1, 2, 3, 4, 5, 6:
			r.visible = at.Add(time.Duration(random.Int64N(int64(18 * minute))))
		}
		w.rows = append(w.rows, r)
	}
	slices.SortStableFunc(w.rows, func(a, b recorded) int { return a.at.Compare(b.at) })
	w.position.Start = begin.Add(-time.Minute)
	reported := int64(0)
	for now := begin; now.Before(begin.Add(span + 100*minute)); now = now.Add(step) {
		time.Sleep(time.Until(now))
		for again := true; again; {
			w.stop, w.stopped = -1, false
			if random.IntN(3) == 0 {
				w.stop = 1 + random.IntN(30)
			}
			run := resume.Run{Source: w, Position: w.position, End: time.Now().Add(-delay).Unix(), Lookback: lookback, Few: few, Arrived: true}
			if run.End <= w.position.Start.Unix() {
				break
			}
			missing, err := run.All()
			if !w.stopped {
				require.NoError(t, err, "seed %d", seed)
			}
			reported += missing.Late
			assert.True(t, missing.Announced == 0 || w.replicas > 0, "seed %d", seed) // the next round finds them
			again = w.stopped
			if w.stopped || random.IntN(4) == 0 {
				w.position = stored(t, w.position)
			}
		}
	}
	want, lost := map[string]int{}, int64(0)
	for _, r := range w.rows {
		want[r.key()]++
	}
	for key, n := range want {
		lost += int64(n - w.got[key])
		assert.LessOrEqual(t, w.got[key], n, "seed %d: %s came too often", seed, key)
	}
	assert.Subset(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(w.got)))
	assert.LessOrEqual(t, lost, int64(tooLate), "seed %d: lost", seed)
	assert.Equal(t, lost, reported, "seed %d: reported", seed)
}
