package main

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of this process so far, user and system.
func cpuTime() time.Duration {
	var created, exited, system, user syscall.Filetime
	self, _ := syscall.GetCurrentProcess()                                                              // it never fails
	_ = syscall.GetProcessTimes(self, &created, &exited, &system, &user)                                // it fails only for wrong arguments
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 + int64(f.LowDateTime) } // of 100 ns
	return 100 * time.Duration(ticks(system)+ticks(user))
}
