// Package soak holds the soak test, and nothing else: random operations of many goroutines against the fake service
// while faults come and go, sessions expire and the service's clock jumps. What each operation said became of it is
// compared with what the fake holds; and when the load rests, nothing may be left of it.
//
// A run is a row of rounds. In a round the goroutines work; at its end they stop, all that they were told is checked
// again, the fake forgets what piled up, and goroutines, connections and heap are measured.
//
//	make soak DURATION=10m                                  over TCP in real time
//	go test ./internal/soak -v -soak.duration=1m -soak.seed=7  again as far as scheduling allows
//	go test ./internal/soak                                 two short rounds in fake time, as part of make test
package soak
