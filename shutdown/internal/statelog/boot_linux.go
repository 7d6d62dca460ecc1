package statelog

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// systemBoot returns the ID of this boot and the time since it began, by CLOCK_MONOTONIC: steps of the wall clock and
// restarts of the agent do not change it.
func systemBoot() (id string, age time.Duration, err error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, fmt.Errorf("failed to read the boot id: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "", 0, fmt.Errorf("failed to read the monotonic clock: %w", err)
	}
	return strings.TrimSpace(string(data)), time.Duration(now.Nano()), nil
}
