package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// maxDelaySeconds keeps the deadline within what a duration can hold.
const maxDelaySeconds = 365 * 24 * 60 * 60

// parse reads one line of a host: a kind, and how many seconds the host waits; or
// the word cancel.
func parse(line string, now time.Time) (shutdown.Event, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return shutdown.Event{}, errors.New("an empty line says nothing")
	case words[0] == "cancel" && len(words) == 1:
		return shutdown.Event{Cancelled: true, Origin: Origin}, nil
	case len(words) > 2 || words[0] == "cancel":
		return shutdown.Event{}, fmt.Errorf("%q is more than KIND [SECONDS] or cancel", line)
	}
	event := shutdown.Event{Kind: shutdown.Kind(words[0]), Origin: Origin}
	switch event.Kind {
	case "shutdown":
		event.Kind = shutdown.KindUnknown
	case shutdown.KindPoweroff, shutdown.KindReboot, shutdown.KindHalt, shutdown.KindKexec, shutdown.KindSoftReboot:
	default:
		return shutdown.Event{}, fmt.Errorf("kind %q is none of shutdown, poweroff, reboot, halt, kexec, soft-reboot", words[0])
	}
	if len(words) == 1 {
		return event, nil
	}
	seconds, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || seconds < 0 || seconds > maxDelaySeconds {
		return shutdown.Event{}, fmt.Errorf("seconds %q is no number from 0 to %d", words[1], maxDelaySeconds)
	}
	event.Deadline = now.Add(time.Duration(seconds) * time.Second)
	return event, nil
}

// answer writes a line to a host, for a bounded time.
func answer(host net.Conn, line string) error {
	if err := host.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(host, line)
	return err
}

// reply lets hosts go on. Each is told and its connection closed; one that has
// gone without waiting has its way already, and is no error.
func reply(hosts []net.Conn, line string) error {
	errs := make([]error, len(hosts))
	for i, host := range hosts {
		_ = answer(host, line)
		errs[i] = host.Close()
	}
	return errors.Join(errs...)
}
