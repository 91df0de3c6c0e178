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
