package shutdown

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootIDFile names the boot; it is another one after each.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// systemBoot reads the boot of this host and the time since it began. The clock
// is CLOCK_MONOTONIC, on which systemd arms its timers: a step of the wall clock
// does not move it, and it is the same for an agent that was restarted.
func systemBoot() (id string, since time.Duration, err error) {
	data, err := os.ReadFile(bootIDFile)
	if err != nil {
		return "", 0, fmt.Errorf("failed to read the boot id: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "", 0, fmt.Errorf("failed to read the monotonic clock: %w", err)
	}
	return strings.TrimSpace(string(data)), time.Duration(now.Nano()), nil
}
