package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func sharingTable() *table {
	return &table{name: "queue", head: []string{"URIs per call", "Calls", "Requests", "URIs per request", "Time", "URIs per second"}}
}

// sharing: a fixed number of goroutines purge a fixed number of URIs, each goroutine one call after the other. A request
// carries what waits when its permit comes, so the number of URIs per call decides how long it takes. The service's limit
// takes the time, so each row is measured once.
func (b *bench) sharing() error {
	s := b.sizes.sharing
	for _, perCall := range s.perCall {
		took, requests, err := shared(s.uris, s.goroutines, perCall)
		if err != nil {
			return err
		}
		perSecond := count(int(float64(s.uris) / took.Seconds()))
		b.queues.add(count(perCall), count(s.uris/perCall), count(requests), count(s.uris/requests), inTime(took), perSecond)
	}
	return nil
}

// shared purges so many URIs and returns how long that took, and in how many requests.
func shared(uris, goroutines, perCall int) (took time.Duration, requests int, err error) {
	err = withService(func(srv *testserver.Server, client *webdelivery.Client) error {
		queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
		if err != nil {
			return err
		}
		errs := make([]error, goroutines+1) // the last is that of Close
		began := time.Now()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for first := g * perCall; first < uris && errs[g] == nil; first += goroutines * perCall {
					call := make([]webdelivery.PurgeURI, perCall)
					for i := range call {
						call[i] = object(first + i)
					}
					_, errs[g] = queue.Purge(context.Background(), call...)
				}
			})
		}
		wg.Wait()
		took = time.Since(began)
		errs[goroutines] = queue.Close(context.Background())
		if err := errors.Join(errs...); err != nil {
			return err
		}
		requests, err = accepted(srv, uris)
		return err
	})
	return took, requests, err
}

// accepted counts the requests, and checks that none was refused and that the service has all URIs.
func accepted(srv *testserver.Server, uris int) (requests int, err error) {
	for _, r := range srv.Requests() {
		requests++
		if r.Status != http.StatusCreated {
			return 0, errRefused
		}
	}
	got := 0
	for _, purge := range srv.Purged() {
		got += len(purge.URIs)
	}
	if got != uris {
		return 0, fmt.Errorf("the service has %d URIs instead of %d", got, uris)
	}
	return requests, nil
}
