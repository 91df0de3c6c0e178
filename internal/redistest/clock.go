package redistest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

//go:embed clock.c.txt
var clock []byte

// Clock returns an environment for a server whose wall clock set shifts. It needs gcc and Linux, or skips the test.
func Clock(t *testing.T) (env []string, set func(ahead time.Duration)) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("LD_PRELOAD is for Linux")
	}
	dir := t.TempDir()
	source, library, file := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so"), filepath.Join(dir, "ahead")
	if err := os.WriteFile(source, clock, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	set = func(ahead time.Duration) {
		if err := os.WriteFile(file, []byte(strconv.Itoa(int(ahead/time.Second))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	return []string{"LD_PRELOAD=" + library, "CLOCK_FILE=" + file}, set
}
