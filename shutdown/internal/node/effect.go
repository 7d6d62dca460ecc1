package node

import (
	"slices"
	"time"
)

// Do is what an effect does.
type Do string

// What is to be done. The effects down to Publish are calls, whose answers carry the Call of the
// effect. The shell begins each and does not wait for it.
const (
	Prepare   Do = "Prepare"
	List      Do = "List"      // the pods; answered by Listed
	OnPlan    Do = "OnPlan"    // Shutdown has the timetable, and Pods are due; not answered
	Hold      Do = "Hold"      //
	Kill      Do = "Kill"      // Pod, within Seconds; answered by Killed
	Unmount   Do = "Unmount"   // wait for the volumes of Pods, until Until
	Tell      Do = "Tell"      // the API server What of Pod, until Until; answered by Told
	Publish   Do = "Publish"   // that the node shuts down by Shutdown, or, if that is nil, does not; answered by Published
	Sync      Do = "Sync"      // what was stored survives a power cut
	OnRelease Do = "OnRelease" //

	Abort       Do = "Abort"       // the call with the number Call
	Store       Do = "Store"       // Shutdown, if it is not nil, and Pods, in the state log
	NewLog      Do = "NewLog"      // begin a log, with Shutdown and Pods, in place of the one that there is
	Suspend     Do = "Suspend"     // keep the lock, and release it at Until whatever hangs
	Release     Do = "Release"     // the lock
	Retake      Do = "Retake"      // the lock during a shutdown, if the host gives it
	HoldAgain   Do = "HoldAgain"   // the shutdown is over: a lock is wanted again
	Report      Do = "Report"      // Shutdown and Pods, to OnReport
	Log         Do = "Log"         // Text
	LogError    Do = "LogError"    // Text
	Begins      Do = "Begins"      // log that a drain of Shutdown begins, Text is why
	RecordEvent Do = "RecordEvent" // Text, on the node
	CountPod    Do = "CountPod"    // the outcome of Pod
	CountBucket Do = "CountBucket" // which has taken Took
)

// Effect is something to be done. The shell reads Shutdown, Pod and Pods before the next Step, which may
// change them.
type Effect struct {
	Do       Do
	Call     int
	Shutdown *Shutdown
	Pod      *Pod
	Pods     []*Pod
	Seconds  int64
	Until    time.Time
	Took     time.Duration
	What     Message
	Text     string
}

// Message is what the API server is told of a pod.
type Message string

// The messages. The wish of a pod that has nothing to tell is "".
const (
	FinalStatus Message = "FinalStatus"
	NotReady    Message = "NotReady"
	Ready       Message = "Ready"
)

// The texts of the kubelet's events.
const (
	textDetected  = "Shutdown manager detected shutdown event"
	textCancelled = "Shutdown manager detected shutdown cancellation"
)

// do has something done.
func (n *Node) do(e Effect) { n.effects = append(n.effects, e) }

// begin begins a call, and returns its number.
func (n *Node) begin(e Effect) int {
	n.lastCall++
	e.Call = n.lastCall
	n.do(e)
	return e.Call
}

// beginAfterStore begins a call once what has changed in the step is in the log, and returns its number.
func (n *Node) beginAfterStore(e Effect) int {
	n.lastCall++
	e.Call = n.lastCall
	n.afterStore = append(n.afterStore, e)
	return e.Call
}

// log has a line logged.
func (n *Node) log(text string) { n.do(Effect{Do: Log, Text: text}) }

// fail logs a failure, and adds it to the report of a shutdown, once.
func (n *Node) fail(s *Shutdown, text string) {
	if n.reported(s, text) {
		n.do(Effect{Do: LogError, Text: text})
	}
}

// reported adds a failure to the report of a shutdown. It returns false if the report has it already.
func (n *Node) reported(s *Shutdown, text string) (isNew bool) {
	if slices.Contains(s.Errors, text) {
		return false
	}
	s.Errors = append(s.Errors, text)
	n.changed(s)
	return true
}
