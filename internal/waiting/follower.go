package waiting

import "context"

// ownEvery says that every tenth read is by id, although the item has another address. What that address returns may
// never change.
const ownEvery = 10

// Follower reads one item again and again. The item may name another address of its own, and nothing says what that
// leads to. So Follower believes what the address leads to only if that is this item. Otherwise it goes back to the id
// in the same read, and stays there. A is an address.
type Follower[T any, A comparable] struct {
	Own A // address of the item by its id
	// ReadOwn reads the item by its id.
	ReadOwn func(ctx context.Context) (T, error)
	// ReadAt reads what another address leads to. full reports whether that says whether an item has ended.
	ReadAt func(ctx context.Context, at A) (item T, full bool, err error)
	// ID returns the id in the response.
	ID func(item T) string
	// Address returns the address that an item names; false if it names none that can be read.
	Address func(item T) (at A, ok bool)
	// Ended reports whether an item has ended.
	Ended func(item T) bool

	id    string // the id in the response
	at    A      // the other address
	away  bool   // reads at the other address
	stay  bool   // the other address did not lead to the item
	reads int    // so far
}

// Read reads the item. It returns the errors of ReadOwn. An error of ReadAt is returned only if the context has ended.
func (f *Follower[T, A]) Read(ctx context.Context) (item T, err error) {
	f.reads++
	if !f.away {
		return f.readOwn(ctx)
	}
	var failed error
	if f.reads%ownEvery == 0 {
		item, err := f.readOwn(ctx)
		if err == nil || ctx.Err() != nil {
			return item, err
		}
		failed = err
	}
	there, full, err := f.ReadAt(ctx, f.at)
	switch {
	case err != nil && ctx.Err() != nil:
		return item, err
	case err == nil && full && f.ID(there) == f.id && (f.Ended(there) || !f.leadsOn(there)):
		return there, nil
	}
	f.away, f.stay = false, true
	if failed != nil {
		return item, failed
	}
	return f.readOwn(ctx)
}

// readOwn reads the item by its id, and remembers its other address for the next reads.
func (f *Follower[T, A]) readOwn(ctx context.Context) (T, error) {
	item, err := f.ReadOwn(ctx)
	if err != nil || f.stay {
		return item, err
	}
	at, ok := f.Address(item)
	f.id, f.at, f.away = f.ID(item), at, ok && at != f.Own
	return item, nil
}

// leadsOn reports whether the item at the other address names yet another one. That could go on for ever.
func (f *Follower[T, A]) leadsOn(item T) bool {
	at, ok := f.Address(item)
	return ok && at != f.at
}
