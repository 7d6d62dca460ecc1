// Package shutdown drains the pods of a node when its host shuts down. It is the kubelet's
// graceful node shutdown (KEP-2000, KEP-2712) for any node agent: pods are killed in buckets
// by priority, each bucket with its seconds, while an inhibitor lock delays the host.
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
//	// pods returns the pods that run on this node.
//	func pods() []*v1.Pod {
//		return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}}
//	}
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
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			Source: source,
//			Pods:   shutdown.PodsFunc(pods),
//			Killer: shutdown.PodKillerFunc(kill),
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := manager.Run(ctx); err != nil { // until ctx ends
//			log.Fatal(err)
//		}
//	}
//
// # A shutdown, step by step
//
// A [plan.Config] gives a [plan.Schedule]: buckets of pods by priority, each with its
// seconds. When the [Source] announces a shutdown, the [Manager] refuses new pods, has the
// node state published, and drains the buckets from the lowest priority to the highest. In
// each bucket it kills the pods and waits for their end, for their volumes and for their
// final statuses. Then it stores a [Report] and closes the inhibitor lock, so that the host
// goes on. [Manager.Plan] shows beforehand how long each pod will get; package plan computes
// that without a manager.
//
// The host may be systemd (package logind) or any program that connects to a unix socket
// (package unixsocket). Without a source, [Manager.Trigger] begins a shutdown.
// [Manager.TerminateAll] drains the node without a shutdown. Package podkiller makes a
// lifecycle.Terminator the [PodKiller] of an agent, for shutdowns and for evictions.
//
// # An agent with a Start method
//
// [Manager.Run] blocks. Some agents need a Start method like the kubelet's, which returns
// when the host is held or cannot be held:
//
//	func (a *agent) Start(ctx context.Context) error {
//		a.ended = make(chan error, 1)
//		go func() { a.ended <- a.manager.Run(ctx) }()
//		<-a.manager.Ready() // at most two seconds if the host does not answer
//		return a.manager.Inhibitor().Err
//	}
//
// Log the error and go on: the manager tries again every second. At the end the agent
// cancels ctx and receives from ended before it exits.
//
// # Time
//
// The configured seconds are for the pods alone. [Options.Prepare] and Hold, publishing, readiness
// marks, unmounts and final statuses have time of their own, and the host is asked to wait for all of
// it. A bucket starts when the one before it is done, which one of 0 s is at once, and unused seconds
// roll over to later buckets.
//
// If the host waits for less than it was asked for, the pods come first: the hold gives way, then
// publishing and what is done beside the kills, down to nothing, and it then runs beside the kills. Only
// if the host's time is less than the pods need are pods cut, from the lowest bucket up. A bucket
// needs the longest grace period of its pods, at most its own seconds. The time of Prepare is never
// shortened.
//
// The lock is never held past the end of the host's time, even if something hangs, and never longer
// than a whole drain needs. That end only moves earlier: neither a later event nor a restart of the
// agent gives a shutdown or a pod more time than it had.
//
// These times are those of the monotonic clock, as logind's limit is. On Linux it stands still while
// the machine is suspended: a drain goes on after that with the time that was left. A deadline that is
// a date, as in a cloud's notice, is converted once, when it is received. A later step of the wall
// clock does not move it, and neither does a suspend.
//
// # A shutdown and its drains
//
// A node shutdown begins with its first event and ends when it is cancelled or the host has gone.
// Several may announce it, such as a cloud's notice (Trigger) and the host: each takes back its own
// announcement, and the shutdown is cancelled when none is left. A drain is one passage through the
// buckets. An event that leaves less time stops it and begins another one; so does a restarted agent.
// Each pod is killed once, with a deadline that only moves earlier, and all drains of a shutdown make
// one [Report], one call of [Options.OnReport], and one count of each pod. A pod that a cancelled
// shutdown has signalled and that has not ended is refused until it has. If it ends in the next
// shutdown, it counts in the first and is Joined in the report of the second.
//
// Prepare runs before the first list of the pods: what would start pods again is stopped there. The
// list is asked for when a drain begins, before each bucket and before the release. If it gives an
// error it is not complete, and is asked for again; one that hangs gets another call beside it after a
// second, and after eight that hang a second later each time. Meanwhile those are killed whom the record of a former agent names, because a pod that was
// signalled and is not known to have ended is in the drain, listed or not.
//
// # What the cluster learns
//
// The [Reporter] publishes the node state before the first kill; package apistatus has one
// that uses client-go. A [ReadinessMarker] takes each pod out of its services before it is
// killed and delays the kill by at most a second. A [StatusFlusher] sends the final status
// of each pod when the pod ends, ten at a time, and tries again after errors. A [PodPolicy]
// for each kind of shutdown decides what that status is: Failed with the kubelet's reason,
// unchanged because the pod comes back after a reboot, or deleted as by kubectl drain. A pod
// that may still run gets no final status.
//
// Each bucket, and at last the release of the host, waits for final statuses while the API
// server answers: until 2.5 s after its last answer. An API server that is down so costs the
// time for publishing, 2.5 s once, and the reserve of each further bucket. It costs the pods
// no time.
//
// # States
//
// A manager is in one of five states. Admission follows from them.
//
//   - none: no shutdown is known.
//   - unsettled: a former agent has left one that may go on, and the host has not said. Pods are refused.
//   - draining: one is announced, and the host is held. Pods are refused.
//   - released: the host was let go, and has not said that it stays. Pods are refused.
//   - dismissed: Trigger has cancelled one that the host has pending. The lock is kept until its end.
//
// A shutdown that several announce ends when all of them have taken that back. The page
// testdata/states.md has each state against each input, and what an agent finds on record. A test
// generates its tables.
//
// # Concurrency properties
//
// All methods of a [Manager] may be called concurrently. Each function of the [Options] is called in a
// goroutine of its own, KillPod for all pods of a bucket at once, and no mutex is held meanwhile. The
// manager reads pods and never changes them.
//
// One goroutine runs the event loop, which owns the state of the shutdown. It never waits for pods, for
// the host, for the disk or for the reporter and calls no code of the embedder's, so that it hears a
// cancellation at any time. The session with the host and the inhibitor lock, the outbox, which owns
// all that the API server must still be told, and the one writer of the state files have goroutines of
// their own, and so has each drain. A cancelled drain kills no further pod and waits for those that it
// has killed, while a new shutdown may begin. All of them have ended when Run returns.
//
// # Failure modes
//
// If the host cannot be reached, refuses the lock or loses it, the manager tries again, at least every
// second, for ever. [Manager.Inhibitor] has the reason. If the host waits for less than the pods' time,
// it is held all the same, and a *[DelayCappedError] names the setting and the file to change.
//
// If a kill fails, it is tried again every second with the rest of the grace period, until the host is
// released or the error wraps [ErrNoRetry].
//
// If code of the embedder hangs, panics or ends its goroutine, the wait for it is bounded, and the
// failure is logged and is in the [Report]. A timer apart from the drain releases the host in time. Run
// waits for calls that hang until ten seconds after the end of its context and of the host's time; then
// its error names them. [Report.Err] joins what has failed.
//
// What the API server must be told is owed until it has it, over drains, shutdowns, agents and boots:
// the node's state, the final statuses, and the readiness of pods that were marked and live on. The
// next agent, also after a reboot, sends what has not been acknowledged, and refuses those pods until
// then. A pod that a cancelled shutdown has not killed owes nothing.
//
// If the agent is restarted during a shutdown and has an [Options.StateDir], the record says whom the
// shutdown has killed and means to kill: all of the first list are on it before the first kill, which
// waits for the disk for 100 ms at most. The shutdown goes on with the same end if the host says that
// it does, or cannot say, or is not reached although it waits, because a lock was adopted. Otherwise the
// report is closed and the node state is taken back. Until this is known pods are refused, from
// [NewManager] on. What Trigger has dismissed does not come back. The host waits for the restarted agent
// only if it has kept the lock, as logind can in systemd's FD store; the report says so if it has not.
//
// A state file that is torn, has another version, belongs to another user, or may be written to by
// others is ignored and named in the log and in the next report. If a state file cannot be written, the
// drain goes on, and the final report is tried again for a second before the host is released. If
// another agent uses the folder, an event drains all the same, since the host's time runs; otherwise
// the manager holds the host and refuses pods. After ten seconds it works without the folder, or Run
// ends with an error if [Options.RequireStateDir] says so.
//
// The page testdata/faults.md shows how a shutdown ends when one call goes wrong. A test generates it.
//
// # Testing
//
// Package shutdowntest has a host, a killer and a reporter that do what a test tells them to.
// The manager works in bubbles of testing/synctest: timers are exact there, and a shutdown of
// an hour takes a millisecond.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package shutdown
