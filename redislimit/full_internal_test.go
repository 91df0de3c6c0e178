package redislimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// At its memory limit, Redis still gives permits. A key needs little memory.
func TestFullRedisGivesPermits(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		rdb := s.client(t)
		require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
		require.ErrorContains(t, rdb.Set(t.Context(), "other", "1", 0).Err(), "OOM")
		l := s.quick(t)
		for range 4 { // the last ones wait with tickets
			acquired(t, l).Done(t.Context(), time.Now())
		}
		require.NoError(t, l.Pause(t.Context(), time.Millisecond))
		assert.NoError(t, l.Wait(t.Context()))
	})
}
