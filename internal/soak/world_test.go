package soak

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// world is the objects of the operations. Objects that no worker changes are read and compared completely. Each write
// has its own value, whose presence shows whether the write was applied.
type world struct {
	operations []operation
	others     []operations.Operation // operations without their own line
	unique     atomic.Uint64

	still        string  // a list that no worker changes
	stillEntries []entry // its entries

	shared    []string // lists to which all workers add, and from which all delete
	doomed    []entry  // entries of these lists, each of which is deleted once
	nextDoom  atomic.Int64
	claimLock sync.Mutex
	claims    []claim
	left      []string // lists that are no longer needed

	eventsFrom time.Time
	purging    chan struct{} // places for workers that wait for a permit
	queueing   chan struct{}
}

// taskID is a task that has ended.
const taskID = "ended"

type entry struct{ list, id, text string }

const (
	sharedLists = 8
	doomedEach  = 100
)

func (s *soak) address() string {
	raw := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint64(raw[8:], s.unique.Add(1))
	return netip.AddrFrom16(raw).String()
}

func (s *soak) addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s.address()
	}
	return all
}

// prepare creates the world of a round, before its weather begins.
func (s *soak) prepare() {
	if s.rounds == 1 {
		s.create()
	}
	s.srv.AddTask(testserver.TaskSpec{ID: taskID})
	s.addEvents()
	s.shared, s.doomed = nil, nil
	s.nextDoom.Store(0)
	for range sharedLists {
		list := s.srv.AddNetworkList(testserver.NetworkListSpec{Name: "shared", Entries: s.addresses(doomedEach)})
		s.shared = append(s.shared, list)
		s.doomed = append(s.doomed, s.identified(list)...)
	}
	s.queues = [2]*webdelivery.PurgeQueue{s.newQueue(0), s.newQueue(1)}
}

func (s *soak) create() {
	s.operations, s.others = lines(), others()
	s.purging, s.queueing = make(chan struct{}, 2), make(chan struct{}, 6)
	var texts []string
	for i := range 1300 {
		texts = append(texts, []string{s.address(), fmt.Sprintf("198.51.%d.%d", i/256, i%256)}[i%2])
	}
	s.still = s.srv.AddNetworkList(testserver.NetworkListSpec{Name: "still", Description: "as it was", Entries: texts})
	s.stillEntries = s.identified(s.still)
	require.Len(s, s.stillEntries, len(texts))
	for i, e := range s.stillEntries {
		require.Equal(s, texts[i], e.text)
	}
}

// identified reads the ids of a list's entries, without faults.
func (s *soak) identified(list string) []entry {
	var all []entry
	for e, err := range s.quiet.NetworkLists.AllEntries(context.Background(), list, webdelivery.EntryOptions{Count: 1000}) {
		require.NoError(s, err)
		all = append(all, entry{list, e.ID, e.Entry})
	}
	return all
}

func (s *soak) leave(list string) {
	s.claimLock.Lock()
	defer s.claimLock.Unlock()
	s.left = append(s.left, list)
}

// sweep deletes these lists, without faults.
func (s *soak) sweep() {
	for _, list := range append(s.left, s.shared...) {
		if s.srv.Entries(list) == nil {
			continue
		}
		_, err := s.quiet.NetworkLists.Delete(context.Background(), list)
		require.NoError(s, err)
		require.Nil(s, s.srv.Entries(list))
	}
	s.left = nil
}
