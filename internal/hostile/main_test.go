package hostile

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if RunChild() {
		return
	}
	startProxy()
	// The scenarios wait most of the time, so all of them run at once. A -parallel flag takes precedence.
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
