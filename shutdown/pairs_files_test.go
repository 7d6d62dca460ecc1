//go:build linux && go1.25

package shutdown_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a power cut undoes of the renames that are not yet synced.
const (
	losesAny  = "" // each or not, at random
	losesAll  = "all"
	losesNone = "none"
)

// pairsFileSteps are the steps of a file at which an agent may die: before its write, between the write
// and the rename, and between the rename and the sync of the folder.
var pairsFileSteps = []string{"write", "written", "renamed"}

// fileDeath is the state of the shutdown in which an agent was killed, and the step.
type fileDeath struct{ state, step string }

// stateName returns the name that testdata/states.md has for the state. The mutex is held.
func (a *pairsAgent) stateName() string {
	switch state := a.table.state; {
	case state == off:
		return "none"
	case state == on && len(a.locks) == 0:
		return "released"
	case state == on:
		return "draining"
	default:
		return string(state)
	}
}

// pairsScripts lead through the five states; each step comes 2.5 s after the one before.
var pairsScripts = func() map[string][]pairsStep {
	var (
		event     = pairsStep{"event", func(w *pairsWorld) { w.announceHost(40 * time.Second) }}
		notice    = pairsStep{"notice", func(w *pairsWorld) { w.announceNotice(time.Minute) }}
		takesBack = func(origin string) pairsStep {
			return pairsStep{"takes back " + origin, func(w *pairsWorld) { w.takeBack(origin) }}
		}
		unreached = pairsStep{"unreached", func(w *pairsWorld) {
			w.refuse(20 * time.Second)
			w.locked(func() {
				if a := w.agent(); a != nil {
					a.kill()
				}
			})
		}}
		waits = pairsStep{"waits", func(w *pairsWorld) { w.advance(16 * time.Second) }}
	)
	return map[string][]pairsStep{
		"released":                          {event, waits, notice, waits},
		"restarted":                         {notice, {"killed", (*pairsWorld).killAgent}, {"killed", (*pairsWorld).killAgent}},
		"unsettled":                         {event, unreached, takesBack("UPS"), takesBack("UPS")},
		"unsettled, and dismissed":          {event, unreached, takesBack("")},
		"dismissed, cancelled and repeated": {event, takesBack(""), {"hostCancels", (*pairsWorld).cancelHost}, event},
		"earlier":                           {event, {"earlier", func(w *pairsWorld) { w.announceAgain(9 * time.Second) }}},
	}
}()

// The agent is killed before and after each write of a state file, and between its rename and the sync
// of the folder, in each state of a shutdown; alone, or with the node, whose disk then has all renames,
// or none that was not synced. What TestPairs asks for holds. Under the race detector every fourth step
// is enough.
func TestKilledAtEveryWrite(t *testing.T) {
	seed, _ := pairsSetting(t)
	dir, seen, next := memoryFolder(t), map[string]int{}, 1
	if underRace {
		next = 4
	}
	for _, death := range []pairsDeath{{}, {reboot: true, loses: losesNone}, {reboot: true, loses: losesAll}} {
		for script, steps := range pairsScripts {
			for died, n := true, 1; died; n += next {
				death.file, death.after = true, n
				name := fmt.Sprintf("%s,%d,%v,%s", script, n, death.reboot, death.loses)
				runDrawn(t, name, drawOf(script, seed), dir, func(w *pairsWorld) {
					w.table.origin, w.kills = time.Now().Add(time.Second), []pairsDeath{death}
					w.newPods()
					w.start()
					for _, s := range steps {
						w.advance(2500 * time.Millisecond)
						w.step(s)
					}
					w.ends()
					died = len(w.fileDeaths) > 0
					for _, at := range w.fileDeaths {
						seen[fmt.Sprint(at.state, " ", at.step, " ", death.reboot, " ", death.loses)]++
					}
				})
			}
		}
	}
	require.True(t, underRace || len(seen) == 5*3*3, "states, steps and what becomes of the node: %v", seen)
}
