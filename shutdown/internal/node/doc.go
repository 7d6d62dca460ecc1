// Package node decides what an agent does about the shutdown of its node: whom it kills when and with
// how many seconds, what the API server is told, when the inhibitor lock is released, and which pods
// may start.
//
// It is a value and a function. [Node.Step] takes an [Input], which says what has happened, and
// returns the [Effect]s that are to be carried out. It starts no goroutine, reads no clock, holds no
// mutex and waits for nothing: a call that hangs is an answer that does not come. A shell makes the
// calls and passes their answers to Step. [Node.Wake] says when Step is due although nothing has
// happened.
//
// Two kinds of entities survive the agent: [Shutdown] and [Pod]. Step returns each of them that has
// changed, in a [Store] effect, and the shell appends it to the state log. The next agent reads the
// log, of which the last entry of each entity counts, and passes it to Step. Resuming is the same code
// as beginning.
//
// All times count from the boot, so that they mean the same to the next agent: time.Unix(0, 0) is the
// boot.
package node
