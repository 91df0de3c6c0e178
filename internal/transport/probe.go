package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// maxProbeWait is how long calls wait for a slow probe while no refusal holds them. It counts from the beginning of the
// probe, and again from its header.
const maxProbeWait = 2 * time.Second

// prober guards a credential: user name and password, a fixed token, or the session of a login. Until the service
// accepts the credential, one request at a time shows it: the probe. If the service refuses it, calls are held as
// refused logins are. A session counts as accepted from the beginning, and a 401 counts only if no login helps: see
// login.final.
//
// If the service never accepted the credential, a 401 holds all calls. If it did, a 401 first holds only its method and
// path, and the next other call is the probe. If that gets 401 too, its area is held, or all calls if the areas differ.
// A 403 of a purge may also mean a missing permission, so it holds only the calls whose rules take a 403 for a refusal.
// If the service has accepted the credential before, the second 403 in a row starts the cool-down.
//
// Each refusal begins a new generation. What an attempt of an earlier generation brings says nothing of the present
// one: it left before the refusal was known.
type prober struct {
	mu sync.Mutex
	coolDown

	generation uint64
	proven     bool          // the service accepted the credential, and holds no calls of all places since
	forAll     bool          // a 401 came since the service last accepted the credential, and holds all calls
	last       *refusalError // the last refusal that holds more than its place; nil without one
	doubt      *refusalError // a 401 at one place, while the credential is proven; nil without one
	places     refusedPlaces
	probe      *probe        // under way; nil without one
	since      time.Time     // when probe began; in doubt, when the first one since began
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

// patience is how long one attempt has waited for probes. Waits for permits and logins between do not count.
type patience struct{ waited time.Duration }

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
		began := time.Now()
		timer := time.NewTimer(busy.until.Sub(began))
		select {
		case <-busy.changed:
		case <-timer.C:
		case <-left:
			timer.Stop()
			return &unsentError{"waiting for the first response to the credentials", pace.Ended(ctx)}
		}
		timer.Stop()
		still.waited += time.Since(began)
	}
}

// enter returns the pass of an attempt, or what it has to wait for, or the error of a held call. With take the attempt
// becomes the probe if one is due.
func (p *prober) enter(r *Request, still *patience, take bool) (free pass, busy waiting, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free.generation = p.generation
	at := p.places.find(r)
	shut, why := p.shut(&r.Rules)
	if at == nil && !shut {
		return free, waiting{}, nil
	}
	if early, refusal := p.early(at, shut, why); early != nil {
		return pass{}, waiting{}, callHeld(early, refusal)
	}
	if at != nil && !at.probe.lost() {
		busy, err = p.await(at.probe, at.last, true, still)
		return free, busy, err
	}
	if shut && !p.probe.lost() {
		busy, err = p.await(p.probe, why, why != nil && why == p.last, still)
		if at == nil || err != nil || busy.changed != nil {
			return free, busy, err
		}
		shut = false // it waits no longer, but is the probe of its place
	}
	if take {
		p.take(&free, at, shut)
	}
	return free, waiting{}, nil
}

// take makes an attempt the probe of its place, of the credential, or of both.
func (p *prober) take(free *pass, at *refusedPlace, shut bool) {
	free.probe = &probe{began: time.Now()}
	if at != nil {
		at.probe = free.probe
	}
	if !shut {
		return
	}
	p.probe = free.probe
	if !p.proven || p.since.IsZero() {
		p.since = p.probe.began
	}
}

// shut reports whether a call with these rules needs a probe, and the refusal that speaks against the credential. At
// first use there is none.
func (p *prober) shut(rules *Rules) (bool, *refusalError) {
	if p.last != nil && (p.forAll || rules.refusesCredentials(p.last.effective())) {
		return true, p.last
	}
	return !p.proven || p.doubt != nil, p.doubt
}

// early returns the error of an attempt whose cool-down is not over, or nil.
func (p *prober) early(at *refusedPlace, shut bool, why *refusalError) (*coolingDownError, *refusalError) {
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

// errNoVerdict: the probes of other calls failed, or were canceled, one after the other.
var errNoVerdict = fmt.Errorf("other calls got none within %v", maxCoolDown)

// await returns until when an attempt waits for a probe, or nothing if it goes without its verdict. held: why is a
// refusal that holds the attempt, so it goes only after the header of a success.
func (p *prober) await(b *probe, why *refusalError, held bool, still *patience) (waiting, error) {
	now := time.Now()
	until := earlier(b.began.Add(maxCoolDown), now.Add(maxCoolDown-still.waited))
	trusted := until.Add(maxCoolDown) // never
	if !held {
		trusted = p.since.Add(maxProbeWait)
	}
	if !b.answered.IsZero() {
		trusted = earlier(trusted, b.answered.Add(maxProbeWait))
	}
	until = earlier(until, trusted)
	switch {
	case !now.Before(trusted):
		return waiting{}, nil
	case now.Before(until):
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		return waiting{p.changed, until}, nil
	case held:
		return waiting{}, callHeld(&coolingDownError{err: why}, why)
	default:
		return waiting{}, &unsentError{"waiting for the first response to the credentials", errNoVerdict}
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
	p.places.end(ended)
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
	at := p.places.concerned(r)
	if certain && p.proven && at != nil && at.alone {
		if probed := left.probe != nil && left.probe == at.probe; probed || at != p.places.find(r) {
			at.refused(r, refusal)
		}
		return
	}
	if left.generation != p.generation {
		return
	}
	p.generation++
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

// onlyHere notes a 401 while the credential is proven. It returns whether it holds only its place, which is not so if
// another area was refused, too, since the service last accepted the credential.
func (p *prober) onlyHere(r *Request, at *refusedPlace, refusal *refusalError) bool {
	another := p.doubt != nil && at == nil
	if at == nil {
		at = p.places.add(r)
	}
	at.refused(r, refusal)
	if another {
		return false
	}
	if p.doubt == nil {
		p.probe, p.since = nil, time.Time{} // a probe that left before says nothing of this doubt
	}
	p.doubt = refusal
	return true
}

// suspects reports whether a refusal speaks against the credential of a call.
func (p *prober) suspects(r *Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt != nil || p.last != nil || p.places.near(r)
}

// accepted notes that the service accepted the credential.
func (p *prober) accepted(r *Request, left pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left.generation != p.generation {
		return
	}
	p.proven, p.forAll, p.last, p.doubt, p.coolDown = true, false, nil, nil, coolDown{}
	p.places.accepted(r)
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
