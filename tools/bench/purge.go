package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// unlimited lets every purge go at once, because the SDK is measured, not the limit of the service.
type unlimited struct{}

// Wait implements [webdelivery.Limiter].
func (unlimited) Wait(context.Context) error { return nil }

// acceptingPurges is a service that reads the body of each purge and checks its Content-Length.
func acceptingPurges(r *http.Request) (*http.Response, error) {
	size, err := io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	if err == nil && size != r.ContentLength {
		err = fmt.Errorf("a body of %d bytes with a Content-Length of %d", size, r.ContentLength)
	}
	if err != nil {
		return nil, err
	}
	return response(http.StatusCreated, []byte(receiptBody))
}

// submitting returns a subject that submits one purge.
func submitting(request webdelivery.PurgeRequest) (subject, error) {
	client, err := inMemoryClient(acceptingPurges)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := client.Purge.Submit(context.Background(), request)
		return err
	}, nil
}

// marshalling is the reference: it encodes the same body in memory.
func marshalling(request webdelivery.PurgeRequest) subject {
	whole := struct {
		PurgeRequest webdelivery.PurgeRequest `json:"purge_request"`
	}{request}
	return func() error {
		_, err := json.Marshal(whole)
		return err
	}
}

// purge measures one large purge.
func (b *bench) purge() error {
	request := purgeOf(b.sizes.uris)
	submit, err := submitting(request)
	if err != nil {
		return err
	}
	results, err := b.interleave(submit, marshalling(request))
	if err != nil {
		return err
	}
	sdk, marshal := results[0], results[1]
	what := "Submit of " + count(b.sizes.uris) + " URIs, Content-Length set, reference json.Marshal"
	r := sdk.ratio(marshal)
	b.figure(what, inTime(sdk.time()), inTime(marshal.time()), times(r), atMost(0.4, r, "times"))
	b.figure(what+": memory allocated", inBytes(sdk.bytes), inBytes(marshal.bytes), times(sdk.bytes/marshal.bytes), atMost(3, sdk.bytes/mib, "MiB"))
	return nil
}

var errRefused = errors.New("the service refused a purge")

// queue measures many callers with one URI each, under the service's limit of two requests per second. That limit
// determines the time, so one run is enough.
func (b *bench) queue() error {
	queued, requests, err := b.queued()
	if err != nil {
		return err
	}
	alone, err := b.oneByOne()
	if err != nil {
		return err
	}
	r := float64(alone) / float64(queued)
	g := goal{"under 4 s, at most 6 requests, ratio above 1,300", queued < 4*time.Second && requests <= 6 && r > 1300}
	b.figure(fmt.Sprintf("%s callers with one URI each, two requests per second, reference one by one (extrapolated from %d)", count(b.sizes.callers), b.sizes.alone),
		fmt.Sprintf("%s, %d requests", inTime(queued), requests), inTime(alone), faster(r), g)
	return nil
}

// withService starts a strict service with one client. Each measurement needs its own, because two clients would share
// the budget of the service.
func withService(use func(*testserver.Server, *webdelivery.Client) error) error {
	srv := testserver.New(testserver.Config{})
	url, err := srv.ListenTCP()
	if err != nil {
		return err
	}
	defer func() { _ = srv.Close() }()
	client, err := newClient(url)
	if err != nil {
		return err
	}
	return use(srv, client)
}

func (b *bench) queued() (took time.Duration, requests int, err error) {
	err = withService(func(srv *testserver.Server, client *webdelivery.Client) error {
		queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
		if err != nil {
			return err
		}
		errs := make([]error, b.sizes.callers+1) // the last one is the error of Close
		began := time.Now()
		var wg sync.WaitGroup
		for i := range b.sizes.callers {
			wg.Go(func() { _, errs[i] = queue.Purge(context.Background(), object(i)) })
		}
		wg.Wait()
		took = time.Since(began)
		errs[b.sizes.callers] = queue.Close(context.Background())
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, r := range srv.Requests() {
			requests++
			if r.Status != http.StatusCreated {
				return errRefused
			}
		}
		return nil
	})
	return took, requests, err
}

// oneByOne returns how long as many callers would take without a queue.
func (b *bench) oneByOne() (took time.Duration, err error) {
	err = withService(func(_ *testserver.Server, client *webdelivery.Client) error {
		began := time.Now()
		for i := range b.sizes.alone {
			request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{object(i)}}
			if _, err := client.Purge.Submit(context.Background(), request); err != nil {
				return err
			}
		}
		took = time.Since(began) * time.Duration(b.sizes.callers) / time.Duration(b.sizes.alone)
		return nil
	})
	return took, err
}
