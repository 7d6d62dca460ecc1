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
package node
