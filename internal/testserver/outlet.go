package testserver

import (
	"context"
	"net/http"
	"time"
)

// outlet passes a reply's body on to the client, as far and as fast as the fault lets it.
type outlet struct {
	ctx context.Context // of the request
	w   http.ResponseWriter

	dribble time.Duration
	stall   time.Duration
	cut     bool
	breaks  bool // a cut or a stall is still to come,
	left    int  // after so many bytes
}

func newOutlet(w http.ResponseWriter, r *http.Request, answer reply, fault Fault) *outlet {
	cut := fault.Cut == CutBody || fault.Cut == CutChunked
	return &outlet{
		ctx: r.Context(), w: w, dribble: fault.Dribble, stall: fault.Stall,
		cut: cut, breaks: cut || fault.Stall > 0, left: answer.breach(fault),
	}
}

// Write implements [io.Writer].
func (o *outlet) Write(p []byte) (int, error) {
	if !o.breaks || len(p) < o.left {
		o.left -= len(p)
		return o.pass(p)
	}
	before, err := o.pass(p[:o.left])
	if err != nil {
		return before, err
	}
	o.breach()
	after, err := o.pass(p[before:])
	return before + after, err
}

// breach is the moment at which the fault strikes. What went out before must not stay behind in a buffer.
func (o *outlet) breach() {
	o.breaks = false
	_ = http.NewResponseController(o.w).Flush()
	if !pause(o.ctx, o.stall) || o.cut {
		abort()
	}
}

// pass does not return if the client goes away while the bytes dribble.
func (o *outlet) pass(p []byte) (int, error) {
	if o.dribble <= 0 {
		return o.w.Write(p)
	}
	control := http.NewResponseController(o.w)
	_ = control.Flush()
	for i := range p {
		if !pause(o.ctx, o.dribble) {
			abort()
		}
		if _, err := o.w.Write(p[i : i+1]); err != nil {
			return i, err
		}
		_ = control.Flush()
	}
	return len(p), nil
}
