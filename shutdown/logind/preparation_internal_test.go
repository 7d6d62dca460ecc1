//go:build linux

package logind

import (
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// logind sends signals (announced, cancelled), and replies to reads of whether a shutdown is in progress (confirmed, denied). They
// are handled in any order, but one that arrived earlier never overrides one that arrived later. The number of a step is its
// message's place in the order of arrival: after announced(3), confirmed(1) handles a reply that arrived before the announcement.
// want is what a step says of the shutdown. A denial ends no shutdown at once, because its signal may follow. The step ended, which
// has no message, does.
func TestMessagesCountInTheOrderOfArrival(t *testing.T) {
	const begins, ends, inProgress, nothing = "begins", "ends", "is in progress", "" // what a message says about the shutdown
	when := func(is bool, what string) string {
		if is {
			return what
		}
		return nothing
	}
	type call func(*preparation) string
	announced := func(number dbus.Sequence) call {
		return func(p *preparation) string { return when(p.noteSignal(true, number), begins) }
	}
	cancelled := func(number dbus.Sequence) call {
		return func(p *preparation) string { return when(p.noteSignal(false, number), ends) }
	}
	confirmed := func(number dbus.Sequence) call {
		return func(p *preparation) string { return when(p.noteConfirmation(number), inProgress) }
	}
	denied := func(number dbus.Sequence) call {
		return func(p *preparation) string { p.noteDenial(number); return when(p.isInProgress(), inProgress) }
	}
	ended := func(p *preparation) string { return when(p.endIfDenied(), ends) }
	type step struct {
		call call
		want string
	}
	for name, steps := range map[string][]step{
		"both signals of one shutdown":                       {{announced(1), begins}, {announced(2), nothing}, {cancelled(3), ends}, {cancelled(4), nothing}},
		"a reply from before the cancellation, handled last": {{cancelled(2), nothing}, {confirmed(1), nothing}},
		"cancelled after the reply":                          {{confirmed(1), inProgress}, {cancelled(2), ends}, {confirmed(1), nothing}},
		"announced again, then an older reply is handled":    {{cancelled(2), nothing}, {announced(3), begins}, {confirmed(1), inProgress}},
		"signals that a reply has overtaken":                 {{confirmed(4), inProgress}, {announced(1), nothing}, {cancelled(2), nothing}, {announced(3), nothing}, {cancelled(5), ends}},
		"a reply that another reply has overtaken":           {{denied(2), nothing}, {confirmed(1), nothing}},
		"an announcement that a denial has overtaken":        {{denied(2), nothing}, {announced(1), nothing}, {announced(3), begins}},
		"a cancellation handled after a newer denial":        {{announced(1), begins}, {denied(3), inProgress}, {cancelled(2), ends}, {ended, nothing}},
		"over without a signal":                              {{announced(1), begins}, {ended, nothing}, {denied(2), inProgress}, {ended, ends}, {ended, nothing}},
		"over, and the next one announced":                   {{announced(1), begins}, {denied(2), inProgress}, {announced(3), begins}, {announced(4), nothing}, {ended, nothing}},
		"confirmed by a later reply too":                     {{confirmed(1), inProgress}, {confirmed(3), inProgress}, {cancelled(2), ends}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &preparation{}
			for i, step := range steps {
				require.Equal(t, step.want, step.call(p), "step %d", i)
			}
		})
	}
}
