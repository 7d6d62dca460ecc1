// Package shutdowntest has a host, a killer of pods and a reporter for the tests
// of those who embed a [shutdown.Manager]:
//
//	synctest.Test(t, func(t *testing.T) {
//		host, killer := &shutdowntest.Host{}, &shutdowntest.Killer{
//			Pods: map[string]shutdowntest.Behaviour{"slow": {Takes: time.Minute}},
//		}
//		m, err := shutdown.NewManager(shutdown.Options{
//			Config: config,
//			Source: host,
//			Killer: killer,
//			Pods:   func() []*v1.Pod { return []*v1.Pod{shutdowntest.Pod("slow", 0, 30)} },
//		})
//		require.NoError(t, err)
//		go m.Run(t.Context())
//		<-m.Ready()
//
//		host.Announce(shutdown.Event{Kind: shutdown.KindReboot})
//		<-time.After(time.Minute)
//
//		kill, _ := killer.Kill("slow") // killed when its bucket was over
//		released, _ := host.Released() // and the host was let go
//	})
//
// # Concurrency properties
//
// Everything may be used by several goroutines. No mutex is held while anything
// waits, and all waits are timers and channels, so that everything works inside a
// bubble of testing/synctest; make the values inside it. An event that [Host]
// announces is in the session's channel when Announce returns: follow it with
// synctest.Wait to see what the manager makes of it.
//
// # Failure modes
//
// A [Host] can refuse a connection, a lock, a delay; grant a lock late; grant less
// delay than it is asked for; lose its sessions; change its mind without a word.
// [Host.Err] tells of locks and sessions that were closed twice. A [Killer] can
// fail, hang, and ignore its context; end such a hang with [Killer.Release], or the
// test does not end. A [Reporter] can be slow, and refuse.
//
// What they are not: the host does not go down, neither when it is let go nor when
// its limit is over, so that a test can see what would have come too late.
//
// # Testing
//
// The tests of package shutdown are written with this package.
package shutdowntest
