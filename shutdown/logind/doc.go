// Package logind is the [shutdown.Source] of hosts with systemd: systemd-logind
// announces a shutdown over D-Bus and waits, up to a limit, as long as somebody
// holds an inhibitor lock.
//
//	source, err := logind.New(logind.Options{})
//	if err != nil {
//		return err // off Linux it wraps errors.ErrUnsupported
//	}
//	manager, err := shutdown.NewManager(shutdown.Options{
//		Config: config, Pods: pods, Killer: killer,
//		Source: source,
//	})
//	if err != nil {
//		return err
//	}
//	return manager.Run(ctx)
//
// An agent that may also run where there is no logind asks [Source.Available]
// first. It has to be root to raise the limit, and root or polkit's friend to take
// the lock.
//
// A session subscribes to PrepareForShutdown and to the newer
// PrepareForShutdownWithMetadata, which names the kind, and takes both for one
// event. Only logind's own signals count: the kubelet obeys everybody's. What other
// users of the bus send is dropped where it is read, and the connection takes no
// descriptors, which a signal can carry too; the one that Inhibit answers with comes
// over a connection of its own. While a shutdown is under way PreparingForShutdown is
// read from time to time, because logind does not announce every cancellation.
//
// # The limit
//
// logind waits for InhibitDelayMaxSec at most, 5 s by default. Where that is less
// than the schedule needs, a drop-in with the setting is written, logind is
// reloaded, and the limit is read until it has changed. The kubelet's drop-in
// loses to every file with a later name (k/k#102818, k/k#107043); the default name
// of this one sorts late, and when it loses all the same, the error names the
// winner and the lock is taken for the time that there is. Where a reload has not
// helped, logind is not reloaded again before the files or the wish change. The
// drop-in outlives the agent, so that the next one need not reload logind; one that
// is no longer needed is removed, unless another agent holds the host for the same reason,
// and [Source.RemoveDropIn] leaves the host as it was.
//
// # The FD store
//
// logind drops the lock of an agent that dies and the host goes down at once.
// Where the agent is a systemd unit with
//
//	[Service]
//	Type=notify
//	FileDescriptorStoreMax=4
//	Restart=always
//	RestartSec=0
//
// a copy of the lock is kept in systemd's FD store. The agent that is started next
// adopts it if the shutdown is still under way, and replaces it if none is. One
// Source of a process gets what was stored, the first.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. A session has one goroutine that
// watches; Close waits for it, and godbus ends its own a moment later. Each call of
// Inhibit has a connection for as long as it takes. Events are delivered in the order
// in which logind sent them; a reader that is slow delays them and loses none. The
// changes of the drop-in take turns, across all sessions of a Source. A lock
// belongs to nobody but its holder, whatever becomes of its session.
//
// # Failure modes
//
//   - The bus is lost, logind's name gets another owner, or the lock is no longer
//     in logind's list: the events are closed. A lock that was held may still hold,
//     so it is closed after the next session has taken a new one.
//   - logind grants less than was asked: *[shutdown.DelayCappedError], joined with
//     what kept it from being raised. The granted time counts all the same.
//   - A drop-in of the same name that somebody else has made, a mask to /dev/null
//     included, is left alone and reported.
//   - Inhibit during a shutdown is refused with OperationInProgress, unless there
//     is a stored lock to adopt.
//   - The drop-in is written where logind does not see it, as by an agent in a container
//     without the host's /etc: the error asks for HostRoot, and logind is reloaded once.
//   - A call of Inhibit that is given up, by its context or by Close, takes nothing: the
//     kernel closes a descriptor that is on its way.
//   - Signals of more than 4 KiB and answers of more than 16 MiB are not decoded.
//   - An FD store that is full or switched off says nothing (systemd's log does):
//     the death of the agent ends the delay then.
//
// # Testing
//
// The package's own tests run against a dbus-daemon with a scripted login1, and
// against systemd-logind itself in namespaces of its own (as root; nothing stays
// behind). Embedders test with shutdown/shutdowntest, which needs neither.
package logind
