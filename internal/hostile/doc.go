// Package hostile holds servers that do what the fake of internal/testserver never does, and the tests of the SDK
// against them. They are slow, stop within a response, close connections, and refuse requests that are in flight.
//
// The servers are written from the service document alone. This package must neither import internal/testserver nor
// copy from it, because a mistake that the fake and the SDK share would go unnoticed. It must not know how the SDK
// works inside, either.
//
// # Entry points
//
//   - [Start] runs a server of purges in its own process. Load on the process of the test does not delay the recording
//     of arrivals there. [Plan] says what the server does with each purge. [Server.Stop] returns the arrivals.
//   - [NewProxy] runs a TCP proxy in the process of the test. [Network] says how it delays, stalls and cuts connections.
//   - [RunChild] is the first statement of a TestMain. It makes the process a server if Start started it.
//
// # How to run it
//
//	go test -race ./internal/hostile
package hostile
