package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// maxProbeWait is how long calls wait for a probe while nothing speaks against the credential. It counts from the
// beginning of the probe, and again from its header. A probe may be slow, or never end.
const maxProbeWait = 2 * time.Second

// prober guards a credential that no login renews: user name and password, or a fixed token. Until the service accepts
// the credential, one request at a time shows it: the probe. If the service refuses it, calls are held as refused
// logins are.
//
// If the service never accepted the credential, a 401 holds all calls. If it did, a 401 first holds only its own path,
// and the next call to another path is the probe. A 401 there, too, holds all calls. A 403 of a purge may also mean a
// missing permission, so it holds only the calls whose rules take a 403 for a refusal. If the service has accepted the
// credential before, the second 403 in a row starts the cool-down.
//
// Each refusal begins a new generation. What an attempt of an earlier generation brings says nothing of the present
// one: it left before the refusal was known.
type prober struct {
	mu sync.Mutex
	coolDown

	generation uint64
	open       bool          // calls go without a probe
	proven     bool          // the service accepted the credential, and holds no calls of all paths since
	forAll     bool          // a 401 came since the service last accepted the credential, and holds all calls
	last       *refusalError // the last refusal that holds more than its path; nil without one
	doubt      *refusalError // a 401 at one path, while the credential is proven; nil without one
	paths      refusedPaths
	probe      *probe        // under way; nil without one
	changed    chan struct{} // closed when waiting calls may go on; nil while none waits
}

// probe is the one request that shows a doubtful credential.
type probe struct {
	began    time.Time
	answered time.Time // when a header came that is no refusal; zero before
}

// lost: the probe takes so long that another one replaces it.
func (b *probe) lost() bool { return b == nil || time.Since(b.began) >= maxCoolDown }

// pass lets one attempt show the credential.
type pass struct {
	generation uint64
	probe      *probe // that the attempt is; nil if it is none
}

// patience is how long one attempt has been waiting for probes.
type patience struct{ since time.Time } // zero: it has not waited yet

// waiting is what an attempt waits for.
type waiting struct {
	changed <-chan struct{} // nil: for nothing
	until   time.Time
}

// wait returns when a call may try to enter. Its error is that of a held call.
func (p *prober) wait(ctx context.Context, r *Request, still *patience) error {
	for {
		_, busy, err := p.enter(r, still, false)
		if busy.changed == nil {
			return err
		}
		left := ctx.Done() // the context may be the user's, and its methods may panic or block: under no lock
		timer := time.NewTimer(time.Until(busy.until))
		select {
		case <-busy.changed:
		case <-timer.C:
		case <-left:
			timer.Stop()
			return &unsentError{"waiting for the first response to the credentials", pace.Ended(ctx)}
		}
		timer.Stop()
	}
}

// enter returns the pass of an attempt, or what it has to wait for, or the error of a held call. With take the attempt
// becomes the probe if one is due.
func (p *prober) enter(r *Request, still *patience, take bool) (free pass, busy waiting, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free.generation = p.generation
	at := p.paths.find(r)
	shut, why := p.shut(&r.Rules)
	if at == nil && !shut {
		return free, waiting{}, nil
	}
	if early, refusal := p.early(at, shut, why); early != nil {
		return pass{}, waiting{}, callHeld(early, refusal)
	}
	if at != nil && !at.probe.lost() {
		busy, err = p.await(at.probe, at.last, still)
		return free, busy, err
	}
	if shut && !p.probe.lost() {
		busy, err = p.await(p.probe, why, still)
		if err == nil && busy.changed == nil && p.last == nil { // the probe takes long, and nothing else speaks against the credential
			p.open = true
			p.wake()
		}
		return free, busy, err
	}
	if take {
		free.probe = &probe{began: time.Now()}
		if shut {
			p.probe = free.probe
		}
		if at != nil {
			at.probe = free.probe
		}
	}
	return free, waiting{}, nil
}

// shut reports whether a call with these rules needs a probe, and the refusal that speaks against the credential. At
// first use there is none.
func (p *prober) shut(rules *Rules) (bool, *refusalError) {
	switch {
	case p.open:
		return false, nil
	case p.last != nil && (p.forAll || rules.refusesCredentials(p.last.effective())):
		return true, p.last
	default:
		return !p.proven || p.doubt != nil, p.doubt
	}
}

// early returns the error of an attempt whose cool-down is not over, or nil.
func (p *prober) early(at *refusedPath, shut bool, why *refusalError) (*coolingDownError, *refusalError) {
	if at != nil {
		if early := at.cooling(); early != nil {
			return early, at.last
		}
	}
	if shut && why != nil && why == p.last {
		return p.cooling(), why
	}
	return nil, nil
}

// await returns until when an attempt waits for a probe. If it need not wait any longer, it goes without a probe if
// nothing speaks against the credential, and is held otherwise.
func (p *prober) await(b *probe, why *refusalError, still *patience) (waiting, error) {
	now, longest := time.Now(), maxCoolDown
	if why == nil {
		longest = maxProbeWait
	}
	if still.since.IsZero() {
		still.since = now
	}
	until := earlier(b.began.Add(longest), still.since.Add(longest))
	passable := why == nil
	if !b.answered.IsZero() {
		trusted := b.answered.Add(maxProbeWait)
		passable = passable || !now.Before(trusted)
		until = earlier(until, trusted)
	}
	switch {
	case now.Before(until):
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		return waiting{p.changed, until}, nil
	case passable:
		return waiting{}, nil
	default:
		return waiting{}, callHeld(&coolingDownError{err: why}, why)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// wake lets all waiting calls see what has changed. The lock is held.
func (p *prober) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// end ends a probe. The next call that waits becomes the probe, unless its response has said enough.
func (p *prober) end(ended *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probe == ended {
		p.probe = nil
	}
	p.paths.end(ended)
	p.wake()
}

// answered notes a header that is no refusal. The body may still say otherwise.
func (p *prober) answered(b *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.answered = time.Now()
	p.wake()
}

// refused notes that the service refused the credential. Several attempts of one generation count once.
func (p *prober) refused(r *Request, left pass, refusal *refusalError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wake()
	certain := refusal.effective() == http.StatusUnauthorized
	at := p.paths.find(r)
	if certain && p.proven && at != nil && at.alone {
		if left.probe != nil && left.probe == at.probe {
			at.refused(refusal)
		}
		return
	}
	if left.generation != p.generation {
		return
	}
	p.generation++
	p.open = false
	if certain && p.proven && p.onlyHere(r, at, refusal) {
		return
	}
	p.last = refusal
	atOnce := 1
	if p.proven && !certain {
		atOnce = 0
	}
	p.strike(atOnce, refusal)
	if certain {
		p.forAll, p.proven = true, false
	}
}

// onlyHere notes a 401 at a path while the credential is proven. It returns whether it holds only the path, which is
// not so if another path was refused, too, since the service last accepted the credential.
func (p *prober) onlyHere(r *Request, at *refusedPath, refusal *refusalError) bool {
	another := p.doubt != nil && at == nil
	if at == nil {
		at = p.paths.add(r)
	}
	at.refused(refusal)
	if !another {
		p.doubt = refusal
	}
	return !another
}

// accepted notes that the service accepted the credential.
func (p *prober) accepted(r *Request, left pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left.generation != p.generation {
		return
	}
	p.open, p.proven, p.forAll, p.last, p.doubt, p.coolDown = true, true, false, nil, nil, coolDown{}
	p.paths.accepted(r)
	p.wake()
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
