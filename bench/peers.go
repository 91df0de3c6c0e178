package main

import (
	"errors"
	"fmt"
)

func peerTable() *table {
	return &table{name: "peers", head: []string{"One small GET", "Time", "Times net/http", "Allocations"}}
}

// peers are other SDKs with the same small GET, each by its own call: what the server answers to it, and how it is made.
// They are there with the build tag peers: compiling them takes minutes.
var peers []peer

type peer struct {
	name, path, reply string
	client            func(url string) (subject, error)
}

var errNoPeers = errors.New("built without other SDKs: go run -tags peers")

func (b *bench) comparePeers() error {
	if len(peers) == 0 {
		return errNoPeers
	}
	sdk, err := sdkGet(b.url)
	if err != nil {
		return err
	}
	names, subjects := []string{"net/http and encoding/json", "webdelivery-go"}, []subject{rawGet(netHTTP(), b.url), sdk}
	for _, p := range peers {
		get, err := p.client(b.url)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		names, subjects = append(names, p.name), append(subjects, get)
	}
	results, err := b.interleave(subjects...)
	if err != nil {
		return err
	}
	for i, m := range results {
		b.peers.add(names[i], inTime(m.time()), times(m.ratio(results[0])), fmt.Sprintf("%.0f", m.allocs))
	}
	return nil
}
