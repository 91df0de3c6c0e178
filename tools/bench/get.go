package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// plainTask is the type that a user of net/http writes.
type plainTask struct {
	ID          string    `json:"id"`
	URI         string    `json:"uri"`
	Operation   string    `json:"operation"`
	Status      string    `json:"status"`
	Complete    bool      `json:"complete"`
	Progress    int       `json:"progress"`
	BeginTime   time.Time `json:"begin_time"`
	EndTime     time.Time `json:"end_time"`
	LastUpdated time.Time `json:"last_updated"`
	User        plainLink `json:"user"`
	Target      plainLink `json:"target"`
}

type plainLink struct {
	ID  string `json:"id"`
	URI string `json:"uri"`
}

var errWrongTask = errors.New("not the task that was asked for")

// rawGet is the reference: net/http and encoding/json with the headers that the SDK sends.
func rawGet(client *http.Client, url string) subject {
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/acme/v1/tasks/task-1", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "webdelivery-go/"+webdelivery.Version)
		req.SetBasicAuth(username, password)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var task plainTask
		if err := json.Unmarshal(body, &task); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || task.ID != "task-1" {
			return errWrongTask
		}
		return nil
	}
}

// sdkGet does the same with the SDK.
func sdkGet(url string) (subject, error) {
	client, err := newClient(url)
	if err != nil {
		return nil, err
	}
	return func() error {
		task, err := client.Tasks.Get(context.Background(), "task-1")
		if err == nil && task.ID != "task-1" {
			err = errWrongTask
		}
		return err
	}, nil
}

// netHTTP returns a client with the defaults of net/http.
func netHTTP() *http.Client {
	transport, _ := http.DefaultTransport.(*http.Transport)
	return &http.Client{Transport: transport.Clone()}
}

// connections measures how many connections 64 goroutines need.
func (b *bench) connections() error {
	const goroutines = 64
	dialled := func(s subject) (float64, error) {
		if err := atOnce(goroutines, b.sizes.requests/5, s); err != nil { // each goroutine opens its connection
			return 0, err
		}
		before, err := b.connectionsSoFar()
		if err != nil {
			return 0, err
		}
		if err := atOnce(goroutines, b.sizes.requests, s); err != nil {
			return 0, err
		}
		after, err := b.connectionsSoFar()
		return float64(after-before-1) * 1000 / float64(b.sizes.requests), err // minus the connection that asked for the number
	}
	sdk, err := sdkGet(b.url)
	if err != nil {
		return err
	}
	ours, err := dialled(sdk)
	if err != nil {
		return err
	}
	theirs, err := dialled(rawGet(netHTTP(), b.url))
	if err != nil {
		return err
	}
	g := atMost(1, ours, "")
	b.figure("64 goroutines at work: new connections per 1,000 requests, reference net/http's defaults", fmt.Sprintf("%.1f", ours), fmt.Sprintf("%.1f", theirs), times(ours/theirs), g)
	return nil
}

func (b *bench) connectionsSoFar() (int, error) {
	client := netHTTP()
	defer client.CloseIdleConnections()
	body, err := fetch(client, b.url+"/connections")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(body))
}

// atOnce runs n operations in so many goroutines.
func atOnce(goroutines, n int, s subject) error {
	work := make(chan struct{})
	failed := make(chan error, goroutines)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var first error
			for range work {
				if err := s(); err != nil && first == nil {
					first = err
				}
			}
			failed <- first
		})
	}
	for range n {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
