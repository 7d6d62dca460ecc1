//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

// pairsFault is a fault of the embedder's code, of the host, or of the disk.
type pairsFault struct {
	kind, way string
	n         int // the first call of the kind that has it
}

// The ways in which a call goes wrong: it hangs and hears its context, it hangs until the end of the
// run, it fails, or it panics or ends its goroutine.
const (
	hears  = "hears"
	deaf   = "deaf"
	failed = "fails"
	dies   = "dies"
	slow   = "slow"
	killed = "killed"
)

// pairsCalls are the kinds of calls: options, methods of the killer, the reporter, the source and its
// sessions, the close of a lock, and the writes of both state files.
var pairsCalls = []struct {
	kind string
	most int // faults of a later call say nothing new
}{
	{"list", 10},
	{"kill", 10},
	{"stop", 10},
	{"hook", 2},
	{"publish", 2},
	{"flush", 10},
	{"mark", 10},
	{"restore", 10},
	{"release", 2},
	{"report", 2},
	{"plan", 2},
	{"hold", 1},
	{"prepare", 1},
	{"policy", 1},
	{"volumes", 2},
	{"connect", 2},
	{"event", 2},
	{"pending", 2},
	{"delay", 2},
	{"inhibit", 2},
	{"unlock", 2},
	{"close", 2},
	{"write", 10},
	{"times", 2},
}

// pairsFaults returns all faults: of the first, the second and the tenth call of each kind.
func pairsFaults() (faults []pairsFault) {
	for _, c := range pairsCalls {
		for _, way := range []string{hears, deaf, failed, dies} {
			for _, n := range []int{1, 2, 10} {
				if ours := slices.Contains([]string{"event", "write", "times"}, c.kind); n <= c.most && (!ours || way != dies) { // only code of the embedder panics
					faults = append(faults, pairsFault{c.kind, way, n})
				}
			}
		}
	}
	return faults
}

func (f pairsFault) String() string { return fmt.Sprint(f.kind, ":", f.way, ":", f.n) }

// pairsTrouble is a fault in a run. The mutex of the world guards all from calls on.
type pairsTrouble struct {
	pairsFault

	lasts time.Duration // 0: one call has it
	after bool          // the call is carried out, and its answer is lost
	exits bool          // a call that dies ends its goroutine

	calls  int // of the kind
	began  time.Time
	spoilt []*pairsSpoilt
}

// pairsSpoilt is a call that has a fault.
type pairsSpoilt struct {
	*pairsTrouble

	agent    *pairsAgent
	of       string    // the pod, or the file; "": none
	at, over time.Time // over is zero while it hangs
}

var (
	errFaulty = errors.New("as the fault has it")
	errKilled = errors.New("the agent was killed")
)

// troubled has a run have faults.
func (w *pairsWorld) troubled(faults ...pairsFault) {
	for _, f := range faults {
		w.troubles = append(w.troubles, &pairsTrouble{
			pairsFault: f, lasts: time.Duration([]int{0, 0, 900, 3300, 6100}[w.rng.IntN(5)]) * time.Millisecond,
			after: w.rng.IntN(2) == 0, exits: w.rng.IntN(2) == 0,
		})
	}
}

func (w *pairsWorld) hasFault(kind string) bool {
	return slices.ContainsFunc(w.troubles, func(t *pairsTrouble) bool { return t.kind == kind })
}

// meets counts a call, and returns the fault that it has; nil: none.
func (a *pairsAgent) meets(kind, of string) (met *pairsSpoilt) {
	a.locked(func() {
		for _, t := range a.troubles {
			if t.kind != kind || a.isDead() || a.settled && kind != "unlock" && kind != "close" {
				continue
			}
			now := time.Now()
			if t.calls++; t.calls == t.n {
				t.began = now
			}
			if met == nil && t.calls >= t.n && (t.calls == t.n || now.Sub(t.began) < t.lasts) {
				met = &pairsSpoilt{pairsTrouble: t, agent: a, of: of, at: now}
				t.spoilt = append(t.spoilt, met)
				a.say("FAULT %v %s for %v (after %v)", t.pairsFault, of, t.lasts, t.after)
				if kind == "list" { // beside a call that hangs there is another one after a second
					a.badLists = append(slices.Clone(a.badLists), pairsSpan{now, now.Add(1100 * time.Millisecond), false})
				}
			}
		}
	})
	return met
}

// spoil makes a call, which goes wrong if a fault is for it.
func (a *pairsAgent) spoil(ctx context.Context, kind, of string, do func() error) error {
	s := a.meets(kind, of)
	if s == nil {
		return do()
	}
	defer func() { a.locked(func() { s.over = time.Now() }) }()
	if s.after && kind != "connect" && kind != "pending" && kind != "inhibit" {
		if err := do(); err != nil {
			return err
		}
		do = func() error { return nil }
	}
	if err := a.goWrong(ctx, s); err != nil {
		return err
	}
	return do()
}

// goWrong is what a fault does. Without an error the call goes on: it was slow.
func (a *pairsAgent) goWrong(ctx context.Context, s *pairsSpoilt) (err error) {
	defer func() { a.locked(func() { s.over = time.Now() }) }()
	switch s.way {
	case deaf:
		<-a.over
		return errKilled
	case hears:
		var slow <-chan time.Time
		if none := ctx == a.Context(); none || s.lasts > 0 { // a disk and a Close hear no context
			slow = time.After(max(s.lasts, time.Second))
		}
		select {
		case <-slow:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-a.gone:
		}
	case slow:
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-a.gone:
		}
	case killed:
		a.locked(func() {
			if !a.isDead() {
				a.kill()
			}
		})
	case failed:
		err = errFaulty
	case dies:
		if err = a.leave(nil); err == nil && s.exits {
			runtime.Goexit()
		} else if err == nil {
			panic(errFaulty)
		}
	}
	return a.leave(err)
}

// spoilt returns the calls of an agent that have had a fault of a kind; nil stands for all agents.
func (w *pairsWorld) spoilt(a *pairsAgent, kind string, ways ...string) (of []*pairsSpoilt) {
	for _, t := range w.troubles {
		for _, s := range t.spoilt {
			if t.kind == kind && (a == nil || s.agent == a) && (len(ways) == 0 || slices.Contains(ways, t.way)) {
				of = append(of, s)
			}
		}
	}
	return of
}

// Each call of the embedder's code, and each write, hangs, fails, or panics: the first, the second and
// the tenth one, once or for some seconds, and another one in the same run. Some runs have an input
// too. What TestPairs asks for holds, but for what the fault itself prevents.
func TestPairsOfFaults(t *testing.T) {
	seed, every := pairsSetting(t)
	dir, faults, n := memoryFolder(t), pairsFaults(), uint64(0)
	for i, first := range faults {
		for _, second := range faults[i:] {
			if n++; (n+seed)%every != 0 {
				continue
			}
			base := int(n/10) % len(pairsBases)
			runPairs(t, fmt.Sprintf("%v,%v,%s", first, second, pairsBases[base].name), seed, dir, func(w *pairsWorld) {
				w.runFaulty(base, w.rng.IntN(2), first, second)
			})
		}
	}
}

// Three to six faults, deaths and inputs in one run, drawn at random. What TestPairs asks for holds.
func TestManyFaults(t *testing.T) {
	seed, every := pairsSetting(t)
	dir, faults := memoryFolder(t), pairsFaults()
	for i := range drawnRuns(every) {
		runPairs(t, strconv.Itoa(i), seed, dir, func(w *pairsWorld) {
			some := make([]pairsFault, 1+w.rng.IntN(4))
			for i := range some {
				some[i] = faults[w.rng.IntN(len(faults))]
			}
			w.runFaulty(w.rng.IntN(len(pairsBases)), max(3+w.rng.IntN(4)-len(some), 0), some...)
		})
	}
}

// runFaulty runs a drain with faults, and with inputs at random moments.
func (w *pairsWorld) runFaulty(base, inputs int, faults ...pairsFault) {
	w.troubled(faults...)
	w.begins(base, nil)
	for range inputs {
		scale := []int{10, 300, 5_000, 20_000}[w.rng.IntN(4)]
		w.advance(time.Duration(w.rng.IntN(scale*1000)) * time.Microsecond)
		w.step(pairsSteps[w.rng.IntN(len(pairsSteps))])
	}
	w.ends()
}
