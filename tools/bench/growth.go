package main

import (
	"fmt"
	"time"
)

func growthTable() *table {
	return &table{name: "growth", head: []string{"What", "Size", "Time", "For each", "Allocations", "Memory"}}
}

// growing measures how the cost grows with the size.
func (b *bench) growing() error {
	for _, grow := range []func() error{b.growingRows, b.growingLists, b.growingTasks, b.growingPurges, b.growingQueues, b.growingCallers} {
		if err := grow(); err != nil {
			return err
		}
	}
	return nil
}

// grown adds a line for n pieces.
func (b *bench) grown(what string, n int, m measured, memory string) {
	b.growth.add(what, count(n), inTime(m.time()), inTime(m.time()/time.Duration(n)), count(int(m.allocs)), memory)
}

func (b *bench) alone(s subject) (measured, error) {
	results, err := b.interleave(s)
	if err != nil {
		return measured{}, err
	}
	return results[0], nil
}

func (b *bench) growingRows() error {
	for _, n := range b.sizes.growth.rows {
		client, err := alwaysResponding(shapes[0].body(b.seed, n))
		if err != nil {
			return err
		}
		m, err := b.alone(all(n, func() (int, error) { return shapes[0].scan(client) }))
		if err != nil {
			return err
		}
		peak, err := b.peakOf("scan", shapes[0], n)
		if err != nil {
			return err
		}
		b.grown("Scan: rows", n, m, inBytes(peak)+", whole process")
	}
	return nil
}

func (b *bench) growingLists() error {
	for _, n := range b.sizes.growth.entries {
		read, err := readingList(n, 0)
		if err != nil {
			return err
		}
		m, err := b.alone(read)
		if err != nil {
			return err
		}
		b.grown("AllEntries: entries", n, m, inBytes(m.bytes)+" allocated")
	}
	for _, n := range b.sizes.growth.entries {
		plan, _, err := planning(n)
		if err != nil {
			return err
		}
		m, err := b.alone(plan)
		if err != nil {
			return err
		}
		b.grown("Plan: entries, as many desired, reading included", n, m, inBytes(m.bytes)+" allocated")
	}
	return nil
}

func (b *bench) growingTasks() error {
	for _, n := range b.sizes.growth.tasks {
		read, err := readingTasks(n)
		if err != nil {
			return err
		}
		m, err := b.alone(read)
		if err != nil {
			return err
		}
		b.grown("Tasks.All: tasks", n, m, inBytes(m.bytes)+" allocated")
	}
	return nil
}

func (b *bench) growingPurges() error {
	for _, n := range b.sizes.growth.uris {
		submit, err := submitting(purgeOf(n))
		if err != nil {
			return err
		}
		m, err := b.alone(submit)
		if err != nil {
			return err
		}
		b.grown("Submit: URIs", n, m, inBytes(m.bytes)+" allocated")
	}
	return nil
}

// growingCallers measures calls of one client from many goroutines. The server runs in another process and uses a part
// of the machine.
func (b *bench) growingCallers() error {
	for _, goroutines := range b.sizes.growth.goroutines {
		get, err := sdkGet(b.url)
		if err != nil {
			return err
		}
		const each = 20
		n := each * goroutines
		m, err := b.alone(func() error { return atOnce(goroutines, n, get) })
		if err != nil {
			return err
		}
		perSecond := float64(n) / m.time().Seconds()
		b.growth.add("Tasks.Get: goroutines", count(goroutines), count(int(perSecond))+" calls per second",
			inTime(m.time()/each), fmt.Sprintf("%.0f a call", m.allocs/float64(n)), inBytes(m.bytes/float64(n))+" a call")
	}
	return nil
}
