package statelog

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// systemBoot returns the ID of this boot and the time since it began. The clock is
// CLOCK_MONOTONIC, which systemd uses for its timers: it is the same for a restarted agent, and a
// change of the wall clock does not move it.
func systemBoot() (id string, since time.Duration, err error) {
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
