package main

func peerTable() *table {
	return &table{name: "peers", head: []string{"One small GET", "CPU time of the client", "Times net/http", "Allocations"}}
}

// peers are other SDKs. Each makes a small GET with its own call, and has its path and response. They need the build
// tag peers, because compiling them takes minutes.
var peers []peer

type peer struct {
	name, path, response string
	client               func(url string) (subject, error)
}
