package node

import (
	"slices"
	"time"
)

// Do is the kind of an effect.
type Do string

// The effects down to OnRelease are calls. The shell starts a call without waiting for it. The input with the call's
// result has the effect's number, Call. The result is CallReturned where no other is named.
const (
	Prepare     Do = "Prepare"     // call Options.Prepare
	List        Do = "List"        // list the pods; result: Listed
	OnPlan      Do = "OnPlan"      // call Options.OnPlan with the timetable of Shutdown and the Pods to kill; no result
	Hold        Do = "Hold"        // call Options.Hold
	Kill        Do = "Kill"        // kill Pod within Seconds; result: Killed
	Unmount     Do = "Unmount"     // wait for the volumes of Pods until Until
	SendMessage Do = "SendMessage" // send Message about Pod to the API server until Until; result: MessageAnswered
	Publish     Do = "Publish"     // publish that Shutdown is in progress, or, if it is nil, that none is; result: Published
	Sync        Do = "Sync"        // make the stored entries survive a power cut
	OnRelease   Do = "OnRelease"   // call Options.OnRelease

	Abort          Do = "Abort"          // cancel the context of the call with the number Call
	Store          Do = "Store"          // append Shutdown, if not nil, and Pods to the state log; ignored before LogRead
	NewLog         Do = "NewLog"         // replace the state log by one with Shutdown and Pods; ignored before LogRead
	KeepLock       Do = "KeepLock"       // keep the lock, but release it at Until in any case
	ReleaseLock    Do = "ReleaseLock"    // release the lock
	RetakeLock     Do = "RetakeLock"     // take the lock again during a shutdown, if the host permits it
	TakeNextLock   Do = "TakeNextLock"   // the shutdown is over: take a lock for the next one
	Report         Do = "Report"         // pass the report of Shutdown to OnReport; Pods are those in it
	Log            Do = "Log"            // log Text
	LogError       Do = "LogError"       // log Text as an error
	LogDrainBegins Do = "LogDrainBegins" // log that a drain of Shutdown begins; Text is the message
	RecordEvent    Do = "RecordEvent"    // record the event Text on the node
	CountPod       Do = "CountPod"       // count the outcome of Pod
	CountBucket    Do = "CountBucket"    // observe Took as the duration of a bucket
)

// Effect is something to carry out. The shell must read Shutdown, Pod and Pods before the next Step,
// which may change them.
type Effect struct {
	Do       Do
	Call     int
	Shutdown *Shutdown
	Pod      *Pod
	Pods     []*Pod
	Seconds  int64
	Until    time.Time
	Took     time.Duration
	Message  Message
	Text     string
}

// Message is a message to the API server about a pod. The zero value is no message.
type Message string

// The messages.
const (
	FinalStatus Message = "FinalStatus"
	NotReady    Message = "NotReady"
	ReadyAgain  Message = "ReadyAgain"
)

// The texts of the kubelet's events.
const (
	textDetected  = "Shutdown manager detected shutdown event"
	textCancelled = "Shutdown manager detected shutdown cancellation"
)

// emit adds an effect to the step.
func (n *Node) emit(e Effect) { n.effects = append(n.effects, e) }

// startCall emits an effect that is a call, and returns the call's number, which its result will have.
func (n *Node) startCall(e Effect) int {
	n.lastCall++
	e.Call = n.lastCall
	n.emit(e)
	return e.Call
}

// startCallAfterStore emits an effect that is a call, after the step's Store effect, because the state log must have what the call
// does before it begins. It returns the call's number.
func (n *Node) startCallAfterStore(e Effect) int {
	n.lastCall++
	e.Call = n.lastCall
	n.afterStore = append(n.afterStore, e)
	return e.Call
}

// log emits an effect that logs a text.
func (n *Node) log(text string) { n.emit(Effect{Do: Log, Text: text}) }

// reportError logs an error and adds it to the report of a shutdown, unless the report has it already.
func (n *Node) reportError(s *Shutdown, text string) {
	if n.addError(s, text) {
		n.emit(Effect{Do: LogError, Text: text})
	}
}

// addError adds an error to the report of a shutdown. isNew is false if the report has it already.
func (n *Node) addError(s *Shutdown, text string) (isNew bool) {
	if slices.Contains(s.Errors, text) {
		return false
	}
	s.Errors = append(s.Errors, text)
	n.markDirty(s)
	return true
}
