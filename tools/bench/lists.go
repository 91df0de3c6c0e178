package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// planning returns two subjects. plan plans n entries against as many of which half are equal. read only reads the
// list, as Plan does.
func planning(n int) (plan, read subject, err error) {
	texts := addresses(n + n/2)
	desired := texts[n/2:]
	client, err := inMemoryClient(listInMemory(texts[:n]))
	if err != nil {
		return nil, nil, err
	}
	plan = func() error {
		p, err := client.NetworkLists.Plan(context.Background(), listID, desired, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll})
		if err == nil && (len(p.Add) != n/2 || len(p.Remove) != n/2) {
			err = fmt.Errorf("the plan adds %d and removes %d of %d", len(p.Add), len(p.Remove), n)
		}
		return err
	}
	const ahead = 4 // the number that Plan uses (docs/open-points.md, 32)
	return plan, reading(client, listID, n, webdelivery.ReadAhead(ahead)), nil
}

// reading returns a subject that reads the n entries of a list.
func reading(client *webdelivery.Client, id string, n int, options ...webdelivery.ReadOption) subject {
	return all(n, func() (entries int, err error) {
		for _, err := range client.NetworkLists.AllEntries(context.Background(), id, webdelivery.EntryOptions{Count: pageCount}, options...) {
			if err != nil {
				return 0, err
			}
			entries++
		}
		return entries, nil
	})
}

// readingList returns a subject that reads a list of n entries from memory. Each response has this delay.
func readingList(n int, delay time.Duration, options ...webdelivery.ReadOption) (subject, error) {
	ready := listInMemory(addresses(n))
	client, err := inMemoryClient(func(r *http.Request) (*http.Response, error) {
		time.Sleep(delay)
		return ready(r)
	})
	return reading(client, listID, n, options...), err
}

// readingTasks returns a subject that reads n tasks from memory.
func readingTasks(n int) (subject, error) {
	client, err := inMemoryClient(tasksInMemory(n))
	return all(n, func() (tasks int, err error) {
		for _, err := range client.Tasks.All(context.Background(), webdelivery.TaskListOptions{Count: pageCount}) {
			if err != nil {
				return 0, err
			}
			tasks++
		}
		return tasks, nil
	}), err
}

// plan measures a full list against as many desired entries. The service bounds the reading, so the goal concerns only
// the rest.
func (b *bench) plan() error {
	plan, read, err := planning(b.sizes.entries)
	if err != nil {
		return err
	}
	results, err := b.interleave(plan, read)
	if err != nil {
		return err
	}
	whole, alone := results[0], results[1]
	comparing := whole.minus(alone)
	n := count(b.sizes.entries)
	what := "Plan of " + n + " against " + n + " entries"
	shown := func(m measured) string { return inTime(m.time()) + ", " + inBytes(m.bytes) + " allocated" }
	b.figure(what+", pages from memory, reference reading alone", shown(whole), shown(alone), times(whole.ratio(alone)), goal{})
	b.figure(what+": comparing", shown(comparing), "", "",
		goal{"at most 90 ms and 40 MiB", comparing.time() <= 90*time.Millisecond && comparing.bytes <= 40*mib})
	return nil
}

// ahead measures what reading ahead gains if each response has a delay.
func (b *bench) ahead() error {
	n := b.sizes.entries
	ahead, err := readingList(n, b.sizes.slow, webdelivery.ReadAhead(8))
	if err != nil {
		return err
	}
	without, err := readingList(n, b.sizes.slow)
	if err != nil {
		return err
	}
	results, err := b.interleave(ahead, without)
	if err != nil {
		return err
	}
	r := results[1].ratio(results[0])
	b.figure(fmt.Sprintf("AllEntries of %s, %v per response: ReadAhead(8), reference without", count(n), b.sizes.slow),
		inTime(results[0].time()), inTime(results[1].time()), faster(r), timesFaster(5, r))
	return nil
}
