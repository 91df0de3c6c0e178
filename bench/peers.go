package main

import (
	"errors"
	"fmt"
)

func peerTable() *table {
	return &table{name: "peers", head: []string{"One small GET", "Time", "Times net/http", "Allocations"}}
}

// peers are other SDKs. Each makes a small GET with its own call, and has its path and response. They need the build
// tag peers, because compiling them takes minutes.
var peers []peer

type peer struct {
	name, path, response string
	client               func(url string) (subject, error)
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
