// Package logind is the [source.Source] of hosts with systemd: systemd-logind
// announces a shutdown over D-Bus and delays it while somebody holds an inhibitor.
//
// The manager of package shutdown drains pods with it:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//		"os/signal"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/shutdown"
//		"github.com/kubegrace/kubegrace/shutdown/logind"
//		"github.com/kubegrace/kubegrace/shutdown/plan"
//	)
//
//	// kill stops the containers of a pod and returns when they have ended.
//	func kill(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
//		fmt.Printf("kill %s within %d s\n", pod.Name, *req.GracePeriodSeconds)
//		return shutdown.KillResult{}, nil
//	}
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		source, err := logind.New(logind.Options{})
//		if err != nil {
//			log.Fatal(err) // on systems other than Linux it wraps errors.ErrUnsupported
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			Source:   source,
//			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}} }, nil),
//			Killer:   shutdown.PodKillerFunc(kill),
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := manager.Run(ctx); err != nil { // until ctx ends
//			log.Fatal(err)
//		}
//	}
//
// Without a logind Run logs the reason and tries again every second. An agent that has another
// source for such hosts, or does not want to start on them, asks [Source.Available] before it makes
// the manager. The manager's Ready is closed when the first attempt to take the inhibitor lock is over.
//
// A program that wants the inhibitor lock alone needs no manager. It passes this package's Source to
// a [source.Holder], and gets godbus, go-systemd and klog, and neither Kubernetes' types nor Prometheus.
//
// The agent must be root to raise logind's limit. To take the inhibitor it must be
// root or allowed by polkit.
//
// A session subscribes to PrepareForShutdown and to the newer PrepareForShutdownWithMetadata, which
// names the kind, and makes one event of both. It accepts them from logind only; the kubelet
// accepts them from every user of the bus. Other messages are dropped before they are decoded, and
// every descriptor is closed when it arrives unless it belongs to the reply to Inhibit, because every
// user can attach descriptors to a signal. While a shutdown is under way the session polls
// PreparingForShutdown, because logind does not announce every cancellation.
//
// # Small buses
//
// Where the kubelet holds a lock, so does this package. All calls go over one connection that begins as
// the kubelet's does, and the session needs of the bus what the kubelet needs: InhibitDelayMaxUSec,
// Inhibit, a match for PrepareForShutdown, and that signal. What else a bus or its logind lacks costs
// what it gives, and one log line of the Source with the key missing:
//
//   - NEGOTIATE_UNIX_FD, refused or not answered within a second: the inhibitor may not arrive.
//   - GetNameOwner, or the senders of signals: announcements are believed whoever sends them.
//   - Matches by sender: announcements of others arrive, and are dropped.
//   - NameOwnerChanged: a restart of logind is not noticed, unless the lock vanishes from its list.
//   - ListInhibitors or GetConnectionUnixProcessID: that logind has lost the lock is not noticed, and
//     the drop-in is removed or lowered although another agent may need it.
//   - PreparingForShutdown: Pending returns an error that wraps [errors.ErrUnsupported], and a
//     cancellation that logind does not announce is not noticed.
//   - A match for PrepareForShutdownWithMetadata: the kind of a shutdown is unknown.
//
// Package logindtest has a bus that can lack each of them.
//
// # The limit
//
// logind delays a shutdown for InhibitDelayMaxSec at most, by default 5 s. If that is
// less than the schedule needs, the session writes a drop-in with a larger value,
// reloads logind, and waits until logind shows the new limit.
//
// The kubelet's drop-in loses to every file with a later name (k/k#102818, k/k#107043). The default
// name of this drop-in sorts late. If it loses nevertheless, the error names the file that wins,
// and the inhibitor is taken for the time that logind grants. If a reload did not change the limit,
// logind is not reloaded again until the files or the requested delay change.
//
// The limit may change while the inhibitor is held: somebody adds a file, removes the drop-in, and reloads
// logind. logind announces none of that. [source.Session.RequestDelay] with the same wish reads the limit
// and the files again. It writes the drop-in again if that helps, logs from what to what the limit was
// changed and which file had set it before, and else names the file that wins. The manager calls it every
// 10 s until a shutdown is announced. At the announcement the limit is read once more, because logind has
// armed its timer with it; a later change does not move that timer.
//
// The drop-in stays when the agent ends, so that the next agent need not reload
// logind. It is removed when it is no longer needed, unless another agent holds an
// inhibitor for the same reason. [Source.RemoveDropIn] removes it for an uninstall.
//
// # The FD store
//
// When an agent dies, logind releases its inhibitor and the host shuts down at once.
// To prevent that, run the agent as a systemd unit with
//
//	[Service]
//	Type=notify
//	FileDescriptorStoreMax=4
//	Restart=always
//	RestartSec=0
//
// The session then keeps a copy of the inhibitor in systemd's FD store. The first Source that
// the next process makes receives that copy. [Source.Adopt] hands it out at once, before the
// bus can be reached. If nobody calls Adopt, the session's Inhibit adopts the copy if a
// shutdown is still under way; otherwise it takes a new inhibitor and closes the copy.
//
// # Concurrency properties
//
// All methods may be called concurrently. A session has one goroutine, which Close waits for;
// godbus has its own, which end a moment later. Events are delivered in the order in which logind sent the signals; a slow reader delays them and
// loses none. Changes of the drop-in run one after the other, across all sessions of a Source. An
// inhibitor stays held when its session ends, until the holder closes it.
//
// # Failure modes
//
//   - The bus is lost, logind's bus name changes its owner, or logind no longer lists
//     the inhibitor: the channel of events is closed. The old inhibitor may still be
//     in force, so close it after the next session has taken a new one.
//   - logind grants less than was requested: RequestDelay returns what it grants, and
//     a *[source.DelayCappedError] joined with the reason.
//   - Somebody else has made a file with the name of the drop-in, for example a link to
//     /dev/null that masks it: the file stays as it is, and is an error.
//   - Inhibit is called during a shutdown: logind refuses with OperationInProgress,
//     unless there is a stored inhibitor that was not adopted.
//   - The agent starts during a shutdown: Pending returns it without a deadline, because
//     logind does not say when it has begun to wait. The event of a shutdown that is
//     announced later has one, by the limit at that moment.
//   - logind does not see the drop-in, as when the agent runs in a container without the
//     host's /etc: the error asks for Options.HostRoot, and logind is reloaded only once.
//   - Inhibit is cancelled by its context or by Close: no inhibitor stays held. A
//     descriptor that was still on its way is closed when it arrives, or with the connection.
//   - Signals of more than 4 KiB and replies of more than 16 MiB are not decoded.
//   - The FD store is full or switched off: only systemd's log says so, and the delay
//     ends when the agent dies.
//
// # Testing
//
// Embedders test with package shutdown/shutdowntest, which needs neither a bus nor logind, or
// with logindtest, which has a bus and a scripted logind in the process of the test. The tests of this package run against a dbus-daemon with a scripted login1
// and, as root, against a real systemd-logind in namespaces that leave nothing behind.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package logind
