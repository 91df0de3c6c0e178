// Package soak holds only the soak test. Many goroutines run random operations against the fake service while faults come
// and go, sessions expire and the service's clock jumps. The test compares the reported outcome of each operation with
// the contents of the fake. When the load stops, no goroutine, connection or memory of it may remain.
//
// A run is a sequence of rounds. In a round the goroutines work. At its end they stop, and the test checks all reported
// outcomes again. Then the fake forgets its records, and the test measures goroutines, connections and heap.
//
//	make soak DURATION=10m                                  over TCP in real time
//	go test ./internal/soak -v -soak.duration=1m -soak.seed=7  the same choices again; scheduling may differ
//	go test ./internal/soak                                 two short rounds in fake time, as part of make test
package soak
