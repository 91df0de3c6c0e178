package batch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Callers go ahead unless the service may refuse a host of theirs.
func TestLane(t *testing.T) {
	t.Parallel()
	ended, running := true, false
	later := time.Hour
	for _, c := range []struct {
		name  string
		host  host
		until time.Duration
		after hosts // besides the host
		want  lane
	}{
		{name: "unknown", want: ahead},
		{name: "unknown, after others were accepted", after: hosts{accepted: true}, want: ahead},
		{name: "unknown, after one was refused at first", after: hosts{wary: time.Now().Add(later)}, want: ahead},
		{name: "unknown, after one was accepted and one refused", after: hosts{accepted: true, wary: time.Now().Add(later)}, want: apart},
		{name: "accepted, after another one was refused", host: host{accepted: true}, after: hosts{accepted: true, wary: time.Now().Add(later)}, want: ahead},
		{name: "refused once", host: host{refused: letters("a")}, until: later, want: apart},
		{name: "refused long ago", host: host{refused: letters("abcdef")}, until: -1, want: ahead},
		{name: "accepted, after some paths were refused", host: host{accepted: true}, until: later, want: apart},
		{name: "searched", host: host{search: &running}, want: search},
		{name: "searched before", host: host{search: &ended}, want: ahead},
	} {
		if c.until != 0 {
			c.host.until = time.Now().Add(c.until)
		}
		hs := c.after
		hs.known = map[string]host{"a": c.host, "good": {accepted: true}}
		assert.Equal(t, c.want, hs.lane([]string{"good", "a"}), c.name)
	}
}

// What is known of hosts has a bound. At the bound, one of them is forgotten for each new one.
func TestHostsAreBounded(t *testing.T) {
	t.Parallel()
	hs := hosts{known: map[string]host{}}
	for i := range maxHosts + 1 {
		hs.set(string(rune(i)), host{accepted: true})
	}
	assert.Len(t, hs.known, maxHosts)
	for name := range hs.known {
		hs.set(name, host{accepted: true})
		break
	}
	assert.Len(t, hs.known, maxHosts, "an update of a known host forgets no other")
}

func TestDivide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hs := hosts{known: map[string]host{
			"good": {accepted: true}, "fine": {accepted: true, refused: letters("abcdef"), until: time.Now().Add(time.Second)},
			"bad": {refused: letters("abcdef"), until: time.Now().Add(time.Second)}, "once": {refused: letters("a"), until: time.Now().Add(time.Second)},
		}}
		var uris []URI
		for _, name := range []string{"bad", "a", "once", "good", "big", "a", "fine", "big", "good", "big"} {
			uris = append(uris, URI{Host: name})
		}
		divided := func() (names []string, sure int, apart []string) {
			together, sure, refused := hs.divide(uris)
			for _, group := range together {
				names = append(names, group[0].Host)
			}
			for _, group := range refused {
				apart = append(apart, group[0].Host)
			}
			return names, sure, apart
		}
		names, sure, apart := divided()
		assert.Equal(t, []string{"good", "fine", "big", "a"}, names, "accepted ones, then the largest")
		assert.Equal(t, 2, sure)
		assert.Equal(t, []string{"bad", "once"}, apart)

		time.Sleep(time.Second)
		names, _, apart = divided()
		assert.Equal(t, []string{"good", "fine", "big", "bad", "a", "once"}, names, "refusals are forgotten")
		assert.Empty(t, apart)
	})
}
