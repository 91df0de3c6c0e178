package waiting_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

// followed is an item as a response has it.
type followed struct {
	id, address string
	ended       bool
}

// away is what the other address leads to.
type away struct {
	followed

	bare bool // does not say whether it has ended
	err  error
}

// A Follower reads an item by its id ("own") at first. If the item names another address ("at"), it reads that, and
// every tenth time the id. If the address does not lead to this item, it goes back to the id and stays there.
// (Service document, open point 1.)
func TestItemsWithAnotherAddress(t *testing.T) {
	t.Parallel()
	item := followed{id: "t", address: "/at"}
	for name, tt := range map[string]struct {
		own   followed
		fails map[int]error // of the reads by id, from 1
		there away
		reads int
		want  []string // what was read, in order
		errs  []error
	}{
		"no address":                   {own: followed{id: "t"}, reads: 3, want: []string{"own", "own", "own"}},
		"its own address":              {own: followed{id: "t", address: "/own"}, reads: 2, want: []string{"own", "own"}},
		"follows":                      {own: item, there: away{followed: item}, reads: 3, want: []string{"own", "at", "at"}},
		"the address names no address": {own: item, there: away{followed: followed{id: "t"}}, reads: 3, want: []string{"own", "at", "at"}},
		"every tenth by id": {
			own: item, there: away{followed: item}, reads: 12,
			want: []string{"own", "at", "at", "at", "at", "at", "at", "at", "at", "own", "at", "at"},
		},
		"the tenth fails, the address helps": {
			own: item, there: away{followed: item}, fails: map[int]error{2: errOutage}, reads: 11,
			want: []string{"own", "at", "at", "at", "at", "at", "at", "at", "at", "own", "at", "at"},
		},
		"the first fails":                   {own: item, there: away{followed: item}, fails: map[int]error{1: errOutage}, reads: 3, want: []string{"own", "own", "at"}, errs: []error{errOutage}},
		"the address fails":                 {own: item, there: away{followed: item, err: errOutage}, reads: 3, want: []string{"own", "at", "own", "own"}},
		"both fail":                         {own: item, there: away{followed: item, err: errOutage}, fails: map[int]error{2: errGone}, reads: 3, want: []string{"own", "at", "own", "own"}, errs: []error{nil, errGone}},
		"another item":                      {own: item, there: away{followed: followed{id: "u", address: "/at", ended: true}}, reads: 3, want: []string{"own", "at", "own", "own"}},
		"a mere reference":                  {own: item, there: away{followed: item, bare: true}, reads: 3, want: []string{"own", "at", "own", "own"}},
		"leads on":                          {own: item, there: away{followed: followed{id: "t", address: "/next"}}, reads: 3, want: []string{"own", "at", "own", "own"}},
		"leads on, but has ended":           {own: item, there: away{followed: followed{id: "t", address: "/next", ended: true}}, reads: 2, want: []string{"own", "at"}},
		"leads back to the id":              {own: item, there: away{followed: followed{id: "t", address: "/own"}}, reads: 3, want: []string{"own", "at", "own", "own"}},
		"an address that cannot be read":    {own: followed{id: "t", address: "!"}, reads: 2, want: []string{"own", "own"}},
		"there an address of another place": {own: item, there: away{followed: followed{id: "t", address: "!"}}, reads: 3, want: []string{"own", "at", "at"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var read []string
			byID := 0
			f := waiting.Follower[followed, string]{
				Own: "/own",
				ReadOwn: func(context.Context) (followed, error) {
					read = append(read, "own")
					byID++
					return tt.own, tt.fails[byID]
				},
				ReadAt: func(_ context.Context, at string) (followed, bool, error) {
					assert.Equal(t, "/at", at)
					read = append(read, "at")
					return tt.there.followed, !tt.there.bare, tt.there.err
				},
				ID:      func(item followed) string { return item.id },
				Address: func(item followed) (string, bool) { return item.address, item.address != "" && item.address != "!" },
				Ended:   func(item followed) bool { return item.ended },
			}
			for i := range tt.reads {
				got, err := f.Read(t.Context())
				if i < len(tt.errs) && tt.errs[i] != nil {
					assert.Equal(t, tt.errs[i], err)
					continue
				}
				require.NoError(t, err)
				want := tt.own
				if read[len(read)-1] == "at" {
					want = tt.there.followed
				}
				assert.Equal(t, want, got)
			}
			assert.Equal(t, tt.want, read)
		})
	}
}

// At the tenth read the id fails, and the address leads elsewhere: the id is not read twice.
func TestTheTenthReadByIDIsNotRepeated(t *testing.T) {
	t.Parallel()
	byID, atAddress := 0, 0
	f := waiting.Follower[string, string]{
		ReadOwn: func(context.Context) (string, error) {
			if byID++; byID == 2 {
				return "", errOutage
			}
			return "t", nil
		},
		ReadAt: func(context.Context, string) (string, bool, error) {
			if atAddress++; atAddress == 9 {
				return "u", true, nil
			}
			return "t", true, nil
		},
		ID: func(item string) string { return item }, Address: func(string) (string, bool) { return "/at", true },
		Ended: func(string) bool { return false },
	}
	for range 9 {
		_, err := f.Read(t.Context())
		assert.NoError(t, err)
	}
	_, err := f.Read(t.Context())
	assert.Equal(t, errOutage, err)
	assert.Equal(t, []int{2, 9}, []int{byID, atAddress})
	_, err = f.Read(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, []int{3, 9}, []int{byID, atAddress}, "it stays with the id")
}

// If the context ends during a read, Follower reads nothing else.
func TestAFollowerStopsWithTheContext(t *testing.T) {
	t.Parallel()
	for reads, want := range map[int]error{1: errOutage, 2: errGone, 10: errOutage} {
		ctx, cancel := context.WithCancel(t.Context())
		last, calls := false, 0
		read := func(err error) (string, error) {
			if !last {
				return "t", nil
			}
			calls++
			cancel()
			return "", err
		}
		f := waiting.Follower[string, string]{
			ReadOwn: func(context.Context) (string, error) { return read(errOutage) },
			ReadAt: func(context.Context, string) (string, bool, error) {
				item, err := read(errGone)
				return item, true, err
			},
			ID: func(item string) string { return item }, Address: func(string) (string, bool) { return "/at", true },
			Ended: func(string) bool { return false },
		}
		for range reads - 1 {
			_, err := f.Read(ctx)
			assert.NoError(t, err)
		}
		last = true
		_, err := f.Read(ctx)
		assert.Equal(t, want, err, "read %d", reads)
		assert.Equal(t, 1, calls, "read %d", reads)
	}
}

// An item that was read is not lost because the context ended at that moment.
func TestAFollowerReturnsWhatItHasRead(t *testing.T) {
	t.Parallel()
	for reads, want := range map[int]string{2: "at", 10: "own"} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		read := func(item string) string {
			if n == reads {
				cancel()
			}
			return item
		}
		f := waiting.Follower[string, string]{
			ReadOwn: func(context.Context) (string, error) { return read("own"), nil },
			ReadAt:  func(context.Context, string) (string, bool, error) { return read("at"), true, nil },
			ID:      func(string) string { return "t" }, Address: func(string) (string, bool) { return "/at", true },
			Ended: func(string) bool { return false },
		}
		for n = 1; n < reads; n++ {
			_, err := f.Read(ctx)
			require.NoError(t, err)
		}
		item, err := f.Read(ctx)
		require.NoError(t, err)
		assert.Equal(t, want, item)
		assert.Error(t, ctx.Err())
	}
}
