package hostile

import (
	"context"
	"runtime"
	"sync"
)

// beBusy keeps all processors busy until stop is called.
func beBusy(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}
