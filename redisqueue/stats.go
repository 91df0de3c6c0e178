package redisqueue

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// Stats returns the statistics of the whole fleet. Pending counts the URIs in Redis that are in no request, also those
// that another process must send again. Err is only a text if another process failed. If Redis is down, Stats returns
// an [*UnavailableError].
func (q *Queue) Stats(ctx context.Context) (webdelivery.QueueStats, error) {
	if err := q.usable(ctx); err != nil {
		return webdelivery.QueueStats{}, err
	}
	stats, _, err := q.store.count(ctx, 0, 0, "", "")
	return stats, err
}

// report adds the statistics of this process to those of the fleet, and reports these.
func (q *Queue) report(now webdelivery.QueueStats) {
	if now.Failures == 0 {
		q.mu.Lock()
		q.answered = time.Now()
		q.mu.Unlock()
	}
	failures, why := "", ""
	switch {
	case now.Failures == 0:
		failures = "0"
	case now.Failures > q.counted.Failures:
		failures, why = strconv.Itoa(now.Failures-q.counted.Failures), shortened(now.Err.Error())
	}
	fleet, unsent, err := q.store.count(context.Background(), now.Requests-q.counted.Requests, now.Accepted-q.counted.Accepted, failures, why)
	if !unsent { // without an answer, it may have added them, and must not do so twice
		q.counted = now
	}
	if err == nil {
		q.fleet = fleet
		if now.Failures > 0 && fleet.Failures > 0 {
			fleet.Err = now.Err
		}
	} else {
		fleet = q.fleet
		fleet.Failures, fleet.Err = max(fleet.Failures, now.Failures, 1), cmp.Or(now.Err, err)
	}
	if q.options.OnStats != nil {
		q.options.OnStats(fleet)
	}
}
