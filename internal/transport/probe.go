package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// maxProbeWait is how long a call waits for the probes of other calls. A probe may be slow, or never end.
const maxProbeWait = 2 * time.Second

// prober guards a credential that no login renews: user name and password, or a fixed token. Until the service accepts
// the credential, one request at a time shows it: the probe. If the service refuses it, calls are held as refused
// logins are.
//
// A 401 holds all calls. A 403 of a purge may also mean a missing permission, so it holds only the calls whose rules
// take a 403 for a refusal. If the service has accepted the credential before, the second 403 in a row starts the
// cool-down.
//
// Each refusal begins a new generation. What an attempt of an earlier generation brings says nothing of the present
// one: it left before the refusal was known.
type prober struct {
	mu sync.Mutex
	coolDown

	generation uint64
	open       bool          // calls go without a probe
	proven     bool          // the service accepted the credential, and no 401 came since
	forAll     bool          // a 401 came since the service last accepted the credential
	last       *refusalError // the last refusal; nil without one
	probe      *probe        // under way; nil without one
}

// probe is the one request that shows a doubtful credential.
type probe struct {
	began time.Time
	done  chan struct{} // closed when it has ended
}

// pass lets one attempt show the credential.
type pass struct {
	generation uint64
	probe      *probe // that the attempt is; nil if it is none
}

// patience is how long one attempt still waits for probes.
type patience struct{ until time.Time } // zero: it has not waited yet

func (p *patience) left() time.Duration {
	if p.until.IsZero() {
		p.until = time.Now().Add(maxProbeWait)
	}
	return time.Until(p.until)
}

func (p *patience) over() bool { return !p.until.IsZero() && !time.Now().Before(p.until) }

// wait returns when a call may try to enter. Its error is that of a held call.
func (p *prober) wait(ctx context.Context, r *Rules, still *patience) error {
	for {
		_, busy, err := p.enter(r, still, false)
		if busy == nil {
			return err
		}
		left := ctx.Done() // the context may be the user's, and its methods may panic or block: under no lock
		timer := time.NewTimer(still.left())
		select {
		case <-busy.done:
		case <-timer.C:
		case <-left:
			timer.Stop()
			return &unsentError{"waiting for the first response to the credentials", pace.Ended(ctx)}
		}
		timer.Stop()
	}
}

// enter returns the pass of an attempt, or the probe that it has to wait for, or the error of a held call. With take
// the attempt becomes the probe if one is due.
func (p *prober) enter(r *Rules, still *patience, take bool) (free pass, busy *probe, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free.generation = p.generation
	held := p.last != nil && (p.forAll || r.refusesCredentials(p.last.effective()))
	if p.open || p.proven && !held {
		return free, nil, nil
	}
	if held {
		if early := p.cooling(); early != nil {
			return pass{}, nil, callHeld(early, p.last)
		}
	}
	switch lost := p.probe == nil || time.Since(p.probe.began) >= maxCoolDown; {
	case lost && take:
		free.probe = &probe{time.Now(), make(chan struct{})}
		p.probe = free.probe
	case lost:
	case !still.over():
		return pass{}, p.probe, nil
	case held:
		return pass{}, nil, callHeld(&coolingDownError{err: p.last}, p.last)
	default:
		p.open = p.last == nil // the first probe takes long, and nothing speaks against the credential
	}
	return free, nil, nil
}

// end ends a probe. The next call that waits becomes the probe, unless its response has said enough.
func (p *prober) end(ended *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probe == ended {
		p.probe = nil
	}
	close(ended.done)
}

// refused notes that the service refused the credential. Several attempts of one generation count once.
func (p *prober) refused(generation uint64, refusal *refusalError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if generation != p.generation {
		return
	}
	p.generation++
	p.open, p.last = false, refusal
	certain := refusal.effective() == http.StatusUnauthorized
	atOnce := 1
	if p.proven && !certain {
		atOnce = 0
	}
	p.strike(atOnce, refusal)
	if certain {
		p.forAll, p.proven = true, false
	}
}

// accepted notes that the service accepted the credential.
func (p *prober) accepted(generation uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if generation == p.generation {
		p.open, p.proven, p.forAll, p.last, p.coolDown = true, true, false, nil, coolDown{}
	}
}

// refusalError is the response that refused a credential, for the calls that are held after it.
type refusalError struct {
	status, code int
	method, path string
}

func (e *refusalError) effective() int { return effectiveStatus(e.status, e.code) }

func (e *refusalError) Error() string {
	status := e.effective()
	return fmt.Sprintf("%s %s got %d %s", e.method, e.path, status, http.StatusText(status))
}
func (e *refusalError) Unwrap() error { return ErrUnauthorized }

// heldError is a call that was not sent because the service refused its credential before.
type heldError struct {
	unsentError

	refusal *refusalError
}

func (e *heldError) Unwrap() error { return &e.unsentError }

func callHeld(why *coolingDownError, refusal *refusalError) *heldError {
	return &heldError{unsentError{"not sent: credentials", why}, refusal}
}
