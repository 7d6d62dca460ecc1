//go:build linux

package logind

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	prepareForShutdown             = "PrepareForShutdown"
	prepareForShutdownWithMetadata = "PrepareForShutdownWithMetadata" // v255 and later, sent before the plain one
	dbusName                       = "org.freedesktop.DBus"
	nameOwnerChanged               = "NameOwnerChanged"
)

// subscribe asks the bus for logind's two signals and for changes of its owner.
// The sender is part of the match, so that no other process can broadcast one;
// a signal that is sent to us directly passes every match, hence [session.hear].
func (c *conn) subscribe(ctx context.Context, signals chan<- *dbus.Signal) error {
	c.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchSender(dbusName), dbus.WithMatchInterface(dbusName), dbus.WithMatchMember(nameOwnerChanged), dbus.WithMatchArg(0, login1)},
		fromLogin1(prepareForShutdown),
		fromLogin1(prepareForShutdownWithMetadata),
	} {
		if err := c.AddMatchSignalContext(ctx, match...); err != nil {
			return fmt.Errorf("subscribe to logind's signals: %w", err)
		}
	}
	return nil
}

func fromLogin1(member string) []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender(login1), dbus.WithMatchObjectPath(login1Path),
		dbus.WithMatchInterface(login1Manager), dbus.WithMatchMember(member),
	}
}

// announcement is what a PrepareForShutdown says.
type announcement struct {
	active bool
	kind   shutdown.Kind
}

// announced reads the body of either signal. ok is false for a body that is not
// as documented; bad metadata leave the kind unknown.
func announced(body []any) (a announcement, ok bool) {
	if len(body) == 0 {
		return announcement{}, false
	}
	if a.active, ok = body[0].(bool); !ok {
		return announcement{}, false
	}
	if len(body) > 1 {
		metadata, _ := body[1].(map[string]dbus.Variant)
		a.kind = kindOf(metadata)
	}
	return a, true
}

// kindOf reads the type from logind's metadata. The manual writes power-off
// where logind sends poweroff; a type that is not known is [shutdown.KindUnknown].
func kindOf(metadata map[string]dbus.Variant) shutdown.Kind {
	name, _ := metadata["type"].Value().(string)
	switch kind := shutdown.Kind(name); kind {
	case "power-off":
		return shutdown.KindPoweroff
	case shutdown.KindPoweroff, shutdown.KindReboot, shutdown.KindHalt, shutdown.KindKexec, shutdown.KindSoftReboot:
		return kind
	default:
		return shutdown.KindUnknown
	}
}
