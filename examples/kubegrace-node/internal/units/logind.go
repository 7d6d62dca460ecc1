package units

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/login1"
)

// ErrKubeletHolds says that a kubelet drains this machine itself.
var ErrKubeletHolds = errors.New("a kubelet holds a shutdown lock of its own: it has a shutdownGracePeriod, and both would stop the same pods " +
	"at the same moment; set its shutdownGracePeriod to 0 and start it again")

// HostGoesDown asks logind whether this machine prepares for a shutdown. A machine without logind
// does not.
func (k *Keeper) HostGoesDown(ctx context.Context) (preparing bool, err error) {
	err = k.login1(ctx, func(bus login1.Bus) error {
		preparing, err = bus.Preparing(ctx)
		return err
	})
	if errors.Is(err, login1.ErrNotRunning) {
		return false, nil
	}
	return preparing, err
}

// CheckKubelet returns ErrKubeletHolds if a kubelet is among logind's inhibitors of shutdowns.
func (k *Keeper) CheckKubelet(ctx context.Context) error {
	return k.login1(ctx, func(bus login1.Bus) error {
		locks, err := bus.Locks(ctx)
		if err == nil && slices.ContainsFunc(locks, login1.Lock.IsKubelets) {
			return ErrKubeletHolds
		}
		return err
	})
}

// login1 calls a function with logind's bus.
func (k *Keeper) login1(ctx context.Context, call func(login1.Bus) error) error {
	conn, err := k.dial(ctx)
	if err != nil {
		return fmt.Errorf("failed to connect to the bus: %w", err)
	}
	return errors.Join(call(login1.Bus{Conn: conn}), conn.Close())
}
