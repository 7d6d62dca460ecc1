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

// maxDelaySeconds bounds SECONDS to one year, which a time.Duration can hold.
const maxDelaySeconds = 365 * 24 * 60 * 60

// parse parses one line of a host: KIND, KIND SECONDS, or cancel. now is the time from
// which the seconds count.
func parse(line string, now time.Time) (source.Event, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return source.Event{}, errors.New("an empty line says nothing")
	case words[0] == "cancel" && len(words) == 1:
		return source.Event{Cancelled: true, Origin: origin}, nil
	case len(words) > 2 || words[0] == "cancel":
		return source.Event{}, fmt.Errorf("%q is more than KIND [SECONDS] or cancel", line)
	}
	event := source.Event{Kind: source.Kind(words[0]), Origin: origin}
	switch {
	case event.Kind == "shutdown":
		event.Kind = source.KindUnknown
	case !slices.Contains(source.Kinds(), event.Kind):
		return source.Event{}, fmt.Errorf("kind %q is none of shutdown, %s", words[0], strings.Trim(strings.ReplaceAll(fmt.Sprint(source.Kinds()), " ", ", "), "[]"))
	}
	if len(words) == 1 {
		return event, nil
	}
	seconds, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || seconds < 0 || seconds > maxDelaySeconds {
		return source.Event{}, fmt.Errorf("seconds %q is no number from 0 to %d", words[1], maxDelaySeconds)
	}
	event.Deadline = now.Add(time.Duration(seconds) * time.Second)
	return event, nil
}

// writeLine writes a line to a host, within replyTimeout.
func writeLine(host net.Conn, line string) error {
	if err := host.SetWriteDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(host, line)
	return err
}

// replyAndClose writes the line to each host and closes the connections. A failed write
// is no error: that host has gone without waiting.
func replyAndClose(hosts []net.Conn, line string) error {
	errs := make([]error, len(hosts))
	for i, host := range hosts {
		_ = writeLine(host, line)
		errs[i] = host.Close()
	}
	return errors.Join(errs...)
}
