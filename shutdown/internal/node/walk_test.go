package node_test

import (
	"encoding/binary"
	"hash/fnv"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// walkDepth is the environment variable with the number of inputs in each sequence of TestAllInputSequences.
const walkDepth = "KUBEGRACE_WALK_DEPTH"

// walker passes one sequence of inputs to an agent with two pods in two buckets. choices counts the inputs that may come
// next, and choose(i) passes the i-th of them. Calls in flight return in any order, and at most one of them fails.
type walker struct {
	*world
	inFlight          []node.Effect // the effects whose calls are in flight
	faultsLeft        int           // how many more calls may fail
	announcementsLeft int           // how many more announcements and cancellations may come
}

// newWalker returns a walker whose agent has read an empty log. Its buckets are 2 s and 1 s, and each has a
// pod with a grace period of 2 s.
func newWalker() *walker {
	c := node.Config{Schedule: plan.Schedule{{Priority: 0, Seconds: 2}, {Priority: 1000, Seconds: 1}}}
	c.Options.Steps = plan.Steps{Publish: true, Statuses: true, Readiness: true}
	const seed, grace, endsAtOnce = 1, 2, 0
	w := &walker{world: newWorld(seed, c), faultsLeft: 1, announcementsLeft: 3}
	w.addPod("low", 0, grace, endsAtOnce)
	w.addPod("critical", 1000, grace, endsAtOnce)
	w.agent, w.calls, w.generation = node.New(c), map[int]func(){}, 1
	w.record.HasLog = true
	w.record.Begin(w.agent, w.now)
	w.input(node.LogRead{SameBoot: true}, "the log is empty")
	return w
}

// input passes an input to the agent, and records the facts for the judge and the calls that are now in flight.
func (w *walker) input(in node.Input, what string) {
	effects, hasReturned := w.stepRecovering(in, what)
	if !hasReturned {
		return
	}
	for _, e := range effects {
		w.record.Effect(e)
		switch e.Do {
		case node.Kill, node.List, node.Sync, node.Publish, node.OnRelease, node.SendMessage:
			w.inFlight = append(w.inFlight, e)
		default:
			w.carryOut(e)
		}
	}
	w.record.EndStep(len(w.inFlight))
}

// choices counts the inputs that may come next; some of them cannot come now, and choose tells which. The inputs are: each call
// in flight succeeds, or fails; two announcements and two cancellations; a Tick; and TerminateAll.
func (w *walker) choices() int {
	n := len(w.inFlight)
	if w.faultsLeft > 0 {
		n *= 2
	}
	if w.announcementsLeft > 0 {
		n += 4
	}
	return n + 2
}

// choose passes the i-th of the inputs that choices counts. It returns false if that input cannot come now.
func (w *walker) choose(i int) bool {
	if w.agent == nil {
		return false
	}
	if i < len(w.inFlight) {
		w.answer(i, nil)
		return true
	}
	i -= len(w.inFlight)
	if w.faultsLeft > 0 {
		if i < len(w.inFlight) {
			w.faultsLeft--
			w.answer(i, errFault)
			return true
		}
		i -= len(w.inFlight)
	}
	if w.announcementsLeft > 0 {
		if i < 4 {
			w.announcementsLeft--
			w.input([]node.Input{
				node.Event{Event: source.Event{Origin: "logind", Deadline: w.now.Add(4 * time.Second)}, Host: true},
				node.Event{Event: source.Event{Cancelled: true}, Host: true},
				node.Event{Event: source.Event{Origin: "notice"}},
				node.Event{Event: source.Event{Cancelled: true}},
			}[i], []string{"the host announces", "the host cancels", "Trigger announces", "Trigger cancels"}[i])
			return true
		}
		i -= 4
	}
	switch i {
	case 0: // the Tick
		wake := w.agent.Wake()
		if wake.IsZero() {
			return false
		}
		w.now = wake
		w.input(node.Tick{}, "")
		return true
	case 1:
		if w.announcementsLeft == 0 || w.terminateAllCalled {
			return false
		}
		w.terminateAllCalled = true
		w.input(node.TerminateAll{}, "TerminateAll")
		return true
	}
	return false
}

// answer makes the i-th call in flight return, with an error if err is not nil.
func (w *walker) answer(i int, err error) {
	e := w.inFlight[i]
	w.inFlight = append(w.inFlight[:i:i], w.inFlight[i+1:]...)
	switch e.Do {
	case node.Kill:
		p := w.podOf(e.Pod.Key)
		if err == nil {
			w.end(p)
		}
		w.input(node.Killed{Call: e.Call, Key: p.Key, Outcome: "Graceful", Err: err}, "")
	case node.List:
		in := node.Listed{Call: e.Call, Err: err}
		for _, p := range w.pods {
			if err == nil && p.ended.IsZero() {
				in.Pods = append(in.Pods, p.Pod)
			}
		}
		w.input(in, "")
	case node.SendMessage:
		p := w.podOf(e.Pod.Key)
		if err == nil {
			w.deliver(p, e.Message)
		}
		w.input(node.MessageAnswered{Call: e.Call, Key: p.Key, Err: err}, "")
	case node.Publish:
		w.input(node.Published{Call: e.Call, Err: err}, "")
	default:
		w.input(node.CallReturned{Call: e.Call, Err: err}, "")
	}
}

// hash hashes the agent and the parts of the world that decide its future. Sequences with the same hash need
// not be continued twice.
func (w *walker) hash() uint64 {
	h := hasher{seen: map[unsafe.Pointer]int{}}
	h.value(reflect.ValueOf(w.agent))
	for _, e := range w.inFlight {
		h.text(string(e.Do))
		h.number(uint64(e.Call))
	}
	for _, p := range w.pods {
		h.number(uint64(p.ended.Unix()))
	}
	h.number(uint64(w.faultsLeft)<<8 | uint64(w.announcementsLeft))
	sum := fnv.New64a()
	_, _ = sum.Write(h.data)
	return sum.Sum64()
}

// hasher serializes a value and everything that it refers to, unexported fields included.
type hasher struct {
	data []byte
	seen map[unsafe.Pointer]int
}

// number adds a number.
func (h *hasher) number(n uint64) { h.data = binary.AppendUvarint(h.data, n) }

// text adds a text with its length.
func (h *hasher) text(s string) {
	h.number(uint64(len(s)))
	h.data = append(h.data, s...)
}

// value adds a value. A pointer that was added before is only its number, so that cycles end: 0 is nil, 1 begins a
// new value, and the numbers from 2 on are earlier values.
func (h *hasher) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			h.number(0)
			return
		}
		if earlier, isKnown := h.seen[v.UnsafePointer()]; isKnown {
			h.number(uint64(earlier))
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
		h.number(uint64(v.Len())) // pods.byKey: pods.all has the same pods
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

// No sequence of up to six inputs makes the node break a rule of judge.Node. A sequence begins with an idle agent, or with one
// whose host has just announced a shutdown. Once a sequence leads to a state that an earlier sequence has reached, it is not
// continued.
func TestAllInputSequences(t *testing.T) {
	depth := 6
	if need.Shortened(t, "sequences of six inputs to a node") {
		depth = 5
	}
	if text := os.Getenv(walkDepth); text != "" {
		var err error
		depth, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in TestSimulator
	for name, first := range map[string][]byte{
		"idle agent":            {},
		"announced by the host": {0, 0, 0, 1}, // the host announces, and then three calls succeed
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[uint64]bool{}
			level := [][]byte{first}
			for range depth {
				level = extendPaths(t, level, seen)
			}
			t.Log(len(seen), "states")
		})
	}
}

// extendPaths extends each path by one input, in all ways, and returns the paths to states that are not in seen.
func extendPaths(t *testing.T, paths [][]byte, seen map[uint64]bool) (next [][]byte) {
	for _, path := range paths {
		for i := range replay(path).choices() {
			to := replay(path)
			if !to.choose(i) {
				continue
			}
			sum := to.hash()
			if seen[sum] {
				continue
			}
			seen[sum] = true
			extended := append(slices.Clip(path), byte(i))
			if broken := judge.Node(&to.record.NodeRecord); len(broken) > 0 {
				t.Fatalf("%v\n%v\n%s", extended, broken, to.record.Story())
			}
			next = append(next, extended)
		}
	}
	return next
}

// replay returns a walker that has chosen these inputs.
func replay(path []byte) *walker {
	w := newWalker()
	for _, i := range path {
		w.choose(int(i))
	}
	return w
}
