//go:build linux && go1.25

package shutdown_test

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// pairsDeath is a kill -9 of an agent at one of its calls or returns.
type pairsDeath struct {
	after  int    // calls and returns of its process, or of all processes since the last death
	file   bool   // only the steps of files count
	reboot bool   // the node goes with it
	loses  string // the renames that a power cut undoes
}

// passes is one step of a process: a call to the host, the killer, the API server, the disk, the list
// of pods or a hook, or the return of one. The mutex is held.
func (a *pairsAgent) passes(kind string) {
	ofFile, death := slices.Contains(pairsFileSteps, kind), pairsDeath{}
	if len(a.kills) > 0 {
		death = a.kills[0]
	}
	if death.file && !ofFile || !death.file && kind == "renamed" {
		return
	}
	if a.calls++; len(a.kills) == 0 || a.calls < a.kills[0].after || a.isDead() || !a.stopping.IsZero() {
		return
	}
	a.calls, a.kills = 0, a.kills[1:]
	a.restart = time.Duration(a.draw.IntN(5_000_000)) * time.Microsecond
	a.fileDeaths = append(a.fileDeaths, fileDeath{a.stateName(), kind})
	if a.kill(); death.reboot {
		a.loses = death.loses
		a.powerOff()
	}
}

// An agent is killed between any two steps of a drain, up to three times, with one or two inputs at any
// moment. What TestPairs asks for holds.
func TestKilledBetweenSteps(t *testing.T) {
	seed, every := pairsSetting(t)
	dir := memoryFolder(t)
	for i := range drawnRuns(every) {
		runPairs(t, strconv.Itoa(i), seed, dir, (*pairsWorld).runKilled)
	}
}

// runKilled draws a run: its base, its deaths and its inputs.
func (w *pairsWorld) runKilled() {
	deaths := make([]pairsDeath, 1+w.rng.IntN(3))
	for i := range deaths {
		deaths[i] = pairsDeath{after: 1 + w.rng.IntN([]int{20, 60, 200}[w.rng.IntN(3)]), reboot: w.rng.IntN(5) == 0}
	}
	if w.rng.IntN(6) == 0 { // the first agent may die before the drain
		w.kills, deaths = deaths, nil
	}
	w.begins(w.rng.IntN(len(pairsBases)), deaths)
	for range 1 + w.rng.IntN(2) {
		scale := []int{10, 300, 5_000, 20_000}[w.rng.IntN(4)]
		w.advance(time.Duration(w.rng.IntN(scale*1000)) * time.Microsecond)
		w.step(pairsSteps[w.rng.IntN(len(pairsSteps))])
	}
	w.ends()
}
