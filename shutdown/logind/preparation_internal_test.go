//go:build linux

package logind

import (
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// Signals and replies are handled in any order, but one that arrived earlier never overrides one that arrived later. Each
// step handles one message, whose number is its place in the order of arrival: after announced(3), confirmed(1) handles a
// reply that arrived before the announcement.
func TestMessagesCountInTheOrderOfArrival(t *testing.T) {
	type call func(*preparation) bool
	announced := func(number dbus.Sequence) call {
		return func(p *preparation) bool { return p.noteSignal(true, number) }
	}
	cancelled := func(number dbus.Sequence) call {
		return func(p *preparation) bool { return p.noteSignal(false, number) }
	}
	confirmed := func(number dbus.Sequence) call {
		return func(p *preparation) bool { return p.noteConfirmation(number) }
	}
	denied := func(number dbus.Sequence) call {
		return func(p *preparation) bool { p.noteDenial(number); return p.isInProgress() }
	}
	ended := (*preparation).endIfDenied
	// want is what the call returns. announced and cancelled: the signal is news. confirmed and denied: a shutdown is in
	// progress after the reply. ended: the shutdown has ended.
	type step struct {
		call call
		want bool
	}
	for name, steps := range map[string][]step{
		"both signals of one shutdown":                       {{announced(1), true}, {announced(2), false}, {cancelled(3), true}, {cancelled(4), false}},
		"cancelled after a reply that is handled late":       {{cancelled(2), false}, {confirmed(1), false}},
		"cancelled after the reply":                          {{confirmed(1), true}, {cancelled(2), true}, {confirmed(1), false}},
		"announced again after a reply that is handled late": {{cancelled(2), false}, {announced(3), true}, {confirmed(1), true}},
		"signals that a reply has overtaken":                 {{confirmed(4), true}, {announced(1), false}, {cancelled(2), false}, {announced(3), false}, {cancelled(5), true}},
		"a reply that another reply has overtaken":           {{denied(2), false}, {confirmed(1), false}},
		"an announcement that a denial has overtaken":        {{denied(2), false}, {announced(1), false}, {announced(3), true}},
		"a cancellation handled after a newer denial":        {{announced(1), true}, {denied(3), true}, {cancelled(2), true}, {ended, false}},
		"over without a signal":                              {{announced(1), true}, {ended, false}, {denied(2), true}, {ended, true}, {ended, false}},
		"over, and the next one announced":                   {{announced(1), true}, {denied(2), true}, {announced(3), true}, {announced(4), false}, {ended, false}},
		"confirmed by a later reply too":                     {{confirmed(1), true}, {confirmed(3), true}, {cancelled(2), true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &preparation{}
			for i, step := range steps {
				require.Equal(t, step.want, step.call(p), "step %d", i)
			}
		})
	}
}
