package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// maxDelaySeconds is the longest delay that a line may have: one year.
const maxDelaySeconds = 365 * 24 * 60 * 60

// parse parses one line of a host: KIND, KIND SECONDS, or cancel. The deadline of the event is SECONDS after now.
func parse(line string, now time.Time) (source.Event, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return source.Event{}, errors.New("the line is empty")
	case words[0] == "cancel" && len(words) == 1:
		return source.Event{Cancelled: true, Origin: origin}, nil
	case len(words) > 2 || words[0] == "cancel":
		return source.Event{}, fmt.Errorf("%q is neither KIND [SECONDS] nor cancel", line)
	}
	event := source.Event{Kind: source.Kind(words[0]), Origin: origin}
	switch {
	case event.Kind == "shutdown":
		event.Kind = source.KindUnknown
	case !slices.Contains(source.Kinds(), event.Kind):
		kinds := strings.Trim(strings.ReplaceAll(fmt.Sprint(source.Kinds()), " ", ", "), "[]") // "poweroff, reboot, ..."
		return source.Event{}, fmt.Errorf("kind %q is not one of shutdown, %s", words[0], kinds)
	}
	if len(words) == 1 {
		return event, nil
	}
	seconds, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || seconds < 0 || seconds > maxDelaySeconds {
		return source.Event{}, fmt.Errorf("seconds %q is not a number from 0 to %d", words[1], maxDelaySeconds)
	}
	event.Deadline = now.Add(time.Duration(seconds) * time.Second)
	return event, nil
}

// writeLine writes a line to a host. It fails after replyTimeout if the host does not read.
func writeLine(host net.Conn, line string) error {
	if err := host.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(host, line)
	return err
}

// replyAndClose writes the line to each host and closes the connections. It returns the errors of closing. A failed write
// is no error: such a host is gone, or does not read, and so does not wait.
func replyAndClose(hosts []net.Conn, line string) error {
	errs := make([]error, len(hosts))
	for i, host := range hosts {
		_ = writeLine(host, line)
		errs[i] = host.Close()
	}
	return errors.Join(errs...)
}
