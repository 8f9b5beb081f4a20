package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memoryOf gives the resident memory of a process in MiB.
func memoryOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no VmRSS", pid)
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib / 1024, err
}

// tick is the unit of the times in /proc, the same on every Linux machine.
const tick = 10 * time.Millisecond

// cpuOf gives the time that a process has spent on the processors.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, may hold anything; state is
	// the first field behind it, utime and stime the 12th and 13th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, err
}
