package testserver

import (
	"context"
	"net/http"
	"time"
)

// outlet sends the body of a response to the client, as far and as fast as the fault allows.
type outlet struct {
	ctx context.Context // of the request
	w   http.ResponseWriter

	dribble time.Duration
	stall   time.Duration
	cut     bool
	breaks  bool // a cut or a stall is still to come
	left    int  // bytes before it
}

func newOutlet(w http.ResponseWriter, r *http.Request, answer response, fault Fault) *outlet {
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

// breach applies the cut or the stall. It flushes first, so that the client gets all bytes before it.
func (o *outlet) breach() {
	o.breaks = false
	_ = http.NewResponseController(o.w).Flush()
	if !pause(o.ctx, o.stall) || o.cut {
		abort()
	}
}

// pass sends bytes. It does not return if the client disconnects while the bytes dribble.
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
