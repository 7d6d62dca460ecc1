// Package node decides how an agent handles the shutdown of its node: which pods it kills, when and
// with which grace period, what it writes to the API server, when it releases the inhibitor lock, and
// which pods may start.
//
// It is a state machine without I/O. [Node.Step] takes an [Input], which says what happened, and
// returns the [Effect]s to carry out. It starts no goroutine, reads no clock, holds no mutex and never
// blocks. The caller (the shell) carries out the effects and passes their results to Step.
// [Node.Wake] returns when Step is due if no input arrives before.
//
// Two entities survive the agent: [Shutdown] and [Pod]. Step returns each changed entity in a [Store]
// effect, and the shell appends it to the state log. The next agent passes the newest entry of each to Step.
// Resuming a drain runs the same code as starting one.
//
// All times count from the boot, time.Unix(0, 0), so that they mean the same to the next agent.
//
// The terms:
//
//   - The host or a caller of Trigger announces a shutdown, and may cancel it.
//   - A shutdown has a timetable: by when each step and each bucket has to be over (package timetable).
//   - A drain is one pass through a timetable: that of a shutdown, or the one with which TerminateAll stops all pods without a
//     shutdown. It kills the pods bucket by bucket: a bucket has the pods of a range of priorities, and its window is the time that
//     the timetable leaves for them.
//   - A pod is signalled when its first kill begins. Its kill is given up when it is not tried again.
//   - The API server first gets NotReady for a pod and, once the pod has ended, its final status, which is pending until the
//     server accepts it.
//   - The previous agent of this node has left its shutdown and pods in the state log. If that shutdown is unfinished, the
//     node waits for the host to say whether it is still pending: the host may have cancelled it in the meantime.
package node
