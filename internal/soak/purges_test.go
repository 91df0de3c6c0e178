package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// newQueue creates a queue of one client. The first queue does not wait for transactions, the second one does.
func (s *soak) newQueue(i int) *webdelivery.PurgeQueue {
	c := []*webdelivery.Client{s.fixed[0], s.fixed[3]}[i]
	q, err := c.Purge.NewQueue(webdelivery.QueueOptions{Wait: i == 1, MaxURIs: 50})
	if err != nil {
		panic(err) // the options are valid
	}
	return q
}

// uris returns URIs that no other worker purges. One call in twenty includes a domain that the customer does not have.
func (w *worker) uris() (all []webdelivery.PurgeURI, patterns []string, foreign bool) {
	foreign = w.IntN(20) == 0
	for i := range 1 + w.IntN(3) {
		domain := "www.example.com"
		if foreign && i == 0 {
			domain = "www.example.org"
		}
		pattern := fmt.Sprintf("https://%s/soak/%d", domain, w.unique.Add(1))
		uri := webdelivery.Exact(pattern)
		if w.IntN(3) == 0 {
			uri = webdelivery.PurgeURI{MatchMode: "PREFIX_LITERAL", URIPattern: pattern, CacheKeyModifierRegex: "v1*"}
		}
		all, patterns = append(all, uri), append(patterns, pattern)
	}
	return all, patterns, foreign
}

// enter takes one of the places for purges. Without a place, the worker does something else. Otherwise all workers
// would soon wait for permits.
func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *worker) submitPurge(ctx context.Context, c *webdelivery.Client) error {
	if !enter(w.purging) {
		return nil
	}
	defer func() { <-w.purging }()
	uris, patterns, foreign := w.uris()
	_, err := c.Purge.Submit(ctx, webdelivery.PurgeRequest{Action: webdelivery.ActionExpire, URIs: uris})
	outcome := w.wrote("Purge.Submit", err)
	if foreign { // whatever the outcome, the service cannot have accepted it
		if outcome == webdelivery.OutcomeApplied {
			w.problem("Purge.Submit", "a foreign domain was purged: %v", err)
		}
		outcome = webdelivery.OutcomeNotApplied
	}
	w.expect(w.purged(), claimed("Purge.Submit", "", patterns, outcome, false, err))
	return err
}

func (w *worker) queuePurge(ctx context.Context, _ *webdelivery.Client) error {
	if !enter(w.queueing) {
		return nil
	}
	defer func() { <-w.queueing }()
	w.queueLock.RLock()
	q := w.queues[w.IntN(2)]
	w.queueLock.RUnlock()
	uris, patterns, _ := w.uris()
	_, err := q.Purge(ctx, uris...)
	all := w.wrote("PurgeQueue.Purge", err) // of the URIs of which the error does not speak
	failures := map[string]webdelivery.Outcome{}
	if failure, ok := errors.AsType[*webdelivery.QueueError](err); ok {
		all = webdelivery.OutcomeApplied // the other URIs were purged
		for _, f := range failure.Failures {
			failures[f.URI.URIPattern] = f.Outcome
		}
	}
	var claims []claim
	for _, p := range patterns {
		of, failed := failures[p]
		if !failed {
			of = all
		}
		if strings.Contains(p, "example.org") {
			if of == webdelivery.OutcomeApplied {
				w.problem("PurgeQueue.Purge", "a foreign domain was purged: %v", err)
			}
			of = webdelivery.OutcomeNotApplied
		}
		claims = append(claims, claimed("PurgeQueue.Purge", "", []string{p}, of, false, err)...)
	}
	w.expect(w.purged(), claims)
	return err
}

// closeQueue replaces a queue by a new one, and closes the old one while callers wait on it.
func (w *worker) closeQueue(ctx context.Context, _ *webdelivery.Client) error {
	if w.IntN(4) != 0 {
		return nil
	}
	i := w.IntN(2)
	w.queueLock.Lock()
	old := w.queues[i]
	w.queues[i] = w.newQueue(i)
	w.queueLock.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.upTo(2*time.Second))
	defer cancel()
	err := old.Close(ctx)
	w.read("PurgeQueue.Close", err)
	return err
}
