package node_test

import (
	"encoding/binary"
	"hash/fnv"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// walkDepth is the environment variable with the number of inputs of each walk.
const walkDepth = "KUBEGRACE_WALK_DEPTH"

// walker is one way through a small world: an agent with two pods in two buckets. Each choice is an
// input that may come now. The calls that are under way are answered in any order, well or, once, with
// a failure.
type walker struct {
	*world
	open   []node.Effect // calls under way
	faults int           // still to come
	spoken int           // announcements and take-backs still to come
}

func newWalker() *walker {
	c := node.Config{Schedule: plan.Schedule{{Priority: 0, Seconds: 2}, {Priority: 1000, Seconds: 1}}}
	c.Options.Steps = plan.Steps{Publish: true, Statuses: true, Readiness: true}
	w := &walker{world: newWorld(1, c), faults: 1, spoken: 3}
	w.addPod("low", 0, 2, 0)
	w.addPod("critical", 1000, 2, 0)
	w.agent, w.isOpen, w.calls, w.life = node.New(c), true, map[int]func(){}, 1
	w.add(judge.NodeFact{What: judge.NodeBegan})
	w.pass(node.Read{SameBoot: true}, "the log is empty")
	return w
}

// pass passes an input, and notes the calls that it begins.
func (w *walker) pass(in node.Input, what string) {
	effects, isFine := w.safely(in, what)
	if !isFine {
		return
	}
	if _, is := in.(node.Tick); is {
		w.add(judge.NodeFact{What: judge.NodeTicked, Effects: len(effects)})
	}
	w.seen()
	for _, e := range effects {
		switch e.Do {
		case node.Kill:
			f := judge.NodeFact{What: judge.NodeKill, Pod: e.Pod.Name, Call: e.Call, Seconds: e.Seconds, Until: e.Until, Bucket: e.Pod.Bucket}
			if s := w.draining(); s != nil {
				f.Shutdown, f.Own = s.Number, s.Origin == "TerminateAll"
			}
			w.add(f)
			w.find(e.Pod.Key).killedBy = w.life
			w.open = append(w.open, e)
		case node.List, node.Sync, node.OnRelease, node.Tell, node.Publish:
			switch e.Do {
			case node.List:
				w.add(judge.NodeFact{What: judge.NodeListing, Call: e.Call})
			case node.Sync:
				w.add(judge.NodeFact{What: judge.NodeSync, Call: e.Call})
			case node.Publish:
				f := judge.NodeFact{What: judge.NodePublish, Call: e.Call}
				if e.Shutdown != nil {
					f.Shutdown = e.Shutdown.Number
				}
				w.add(f)
			default:
			}
			w.open = append(w.open, e)
		default:
			w.carryOut(e)
		}
	}
	f := judge.NodeFact{What: judge.NodeState, State: w.agent.State().String(), Refuses: w.agent.Refuses(), Calls: len(w.open)}
	if of := w.agent.Shutdown(); of != nil {
		f.Shutdown = of.Number
	}
	w.add(f)
}

// choices returns how many inputs may come now.
func (w *walker) choices() int {
	n := len(w.open)
	if w.faults > 0 {
		n *= 2
	}
	if w.spoken > 0 {
		n += 4
	}
	return n + 2
}

// choose passes the input of a number. It reports whether there is one.
func (w *walker) choose(i int) bool {
	if w.agent == nil {
		return false
	}
	if i < len(w.open) {
		w.answer(i, nil)
		return true
	}
	i -= len(w.open)
	if w.faults > 0 {
		if i < len(w.open) {
			w.faults--
			w.answer(i, errFault)
			return true
		}
		i -= len(w.open)
	}
	if w.spoken > 0 {
		if i < 4 {
			w.spoken--
			w.pass([]node.Input{
				node.Event{Event: source.Event{Origin: "logind", Deadline: w.now.Add(4 * time.Second)}, Host: true},
				node.Event{Event: source.Event{Cancelled: true}, Host: true},
				node.Event{Event: source.Event{Origin: "notice"}},
				node.Event{Event: source.Event{Cancelled: true}},
			}[i], []string{"the host announces", "the host takes back", "Trigger announces", "Trigger takes back"}[i])
			return true
		}
		i -= 4
	}
	switch i {
	case 0: // the next moment that the agent wants
		wake := w.agent.Wake()
		if wake.IsZero() {
			return false
		}
		w.now = wake
		w.pass(node.Tick{}, "")
		return true
	case 1:
		if w.spoken == 0 || w.isEnding {
			return false
		}
		w.isEnding = true
		w.add(judge.NodeFact{What: judge.NodeTerminateAll})
		w.pass(node.TerminateAll{}, "TerminateAll")
		return true
	}
	return false
}

// answer answers a call.
func (w *walker) answer(i int, err error) {
	e := w.open[i]
	w.open = append(w.open[:i:i], w.open[i+1:]...)
	switch e.Do {
	case node.Kill:
		p := w.find(e.Pod.Key)
		if err == nil {
			w.end(p)
		}
		w.add(judge.NodeFact{What: judge.NodeKilled, Pod: p.Name, Call: e.Call, Failed: err != nil})
		w.pass(node.Killed{Call: e.Call, Key: p.Key, Outcome: "Graceful", Err: err}, "")
	case node.List:
		in := node.Listed{Call: e.Call, Err: err}
		for _, p := range w.pods {
			if err == nil && p.ended.IsZero() {
				in.Pods = append(in.Pods, p.Pod)
			}
		}
		w.pass(in, "")
	case node.Tell:
		p := w.find(e.Pod.Key)
		if err == nil {
			if e.What == node.FinalStatus {
				w.add(judge.NodeFact{What: judge.NodeTold, Pod: p.Name})
			}
			if e.What != node.FinalStatus {
				p.isReady = e.What == node.Ready
			}
		}
		w.pass(node.Told{Call: e.Call, Key: p.Key, Err: err}, "")
	case node.Publish:
		w.add(judge.NodeFact{What: judge.NodePublished, Call: e.Call, Failed: err != nil})
		w.pass(node.Published{Call: e.Call, Err: err}, "")
	default:
		if e.Do == node.Sync {
			w.add(judge.NodeFact{What: judge.NodeSynced, Call: e.Call})
		}
		w.pass(node.Answered{Call: e.Call, Err: err}, "")
	}
}

// sum hashes the agent, and what of the world decides how it goes on.
func (w *walker) sum() uint64 {
	h := hasher{seen: map[unsafe.Pointer]int{}}
	h.value(reflect.ValueOf(w.agent))
	for _, e := range w.open {
		h.text(string(e.Do))
		h.number(uint64(e.Call))
	}
	for _, p := range w.pods {
		h.number(uint64(p.ended.Unix()))
	}
	h.number(uint64(w.faults)<<8 | uint64(w.spoken))
	sum := fnv.New64a()
	_, _ = sum.Write(h.data)
	return sum.Sum64()
}

// hasher writes a value with all that it refers to, unexported fields included.
type hasher struct {
	data []byte
	seen map[unsafe.Pointer]int
}

func (h *hasher) number(n uint64) { h.data = binary.AppendUvarint(h.data, n) }
func (h *hasher) text(s string) {
	h.number(uint64(len(s)))
	h.data = append(h.data, s...)
}

func (h *hasher) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			h.number(0)
			return
		}
		if n, is := h.seen[v.UnsafePointer()]; is {
			h.number(uint64(n))
			return
		}
		h.seen[v.UnsafePointer()] = len(h.seen) + 2
		if v.Type().Elem().PkgPath() == "k8s.io/api/core/v1" {
			return // pods do not change
		}
		h.number(1)
		h.value(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[node.Config]() {
			return
		}
		if v.Type() == reflect.TypeFor[time.Time]() {
			h.number(v.Field(0).Uint())
			h.number(uint64(v.Field(1).Int()))
			return
		}
		for i := range v.NumField() {
			h.value(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		h.number(uint64(v.Len()))
		for i := range v.Len() {
			h.value(v.Index(i))
		}
	case reflect.Map:
		h.number(uint64(v.Len())) // the pods by their keys, which the list of the pods has too
	case reflect.Interface:
		if h.number(0); !v.IsNil() {
			h.text(v.Elem().Type().String())
			h.value(v.Elem())
		}
	case reflect.String:
		h.text(v.String())
	case reflect.Bool:
		if h.number(0); v.Bool() {
			h.number(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.number(v.Uint())
	default:
	}
}

// TestWalk goes every way of a depth through a small world, from an agent that knows nothing and from one
// whose host has just announced. It goes on from each state once.
func TestWalk(t *testing.T) {
	depth := 6
	if text := os.Getenv(walkDepth); text != "" {
		var err error
		depth, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for name, first := range map[string][]byte{"none": {}, "announced": {0, 0, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			seen := map[uint64]bool{}
			level := [][]byte{first}
			for range depth {
				level = walkOn(t, level, seen)
			}
			t.Log(len(seen), "states")
		})
	}
}

// walkOn goes on by one input from each way, and returns the ways to new states.
func walkOn(t *testing.T, ways [][]byte, seen map[uint64]bool) (next [][]byte) {
	for _, way := range ways {
		for i := range replay(way).choices() {
			to := replay(way)
			if !to.choose(i) {
				continue
			}
			sum := to.sum()
			if seen[sum] {
				continue
			}
			seen[sum] = true
			way := append(slices.Clip(way), byte(i))
			if broken := judge.Node(&to.record); len(broken) > 0 {
				t.Fatalf("%v\n%v\n%s", way, broken, to.record.Story())
			}
			next = append(next, way)
		}
	}
	return next
}

// replay goes a way.
func replay(way []byte) *walker {
	w := newWalker()
	for _, i := range way {
		w.choose(int(i))
	}
	return w
}
