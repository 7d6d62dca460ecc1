package machine

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/login1"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/internal/logindconf"
)

// Status is the verdict in short, and the exit status of kubegrace-node status.
type Status int

const (
	// Held means that no pod gets less time than it asks for: an agent delays the shutdown, or has drained the machine already.
	Held Status = 0
	// Lossy means that an agent delays the shutdown, but some pods get less time than they ask for.
	Lossy Status = 2
	// Unheld means that nothing delays the shutdown for the pods.
	Unheld Status = 3
	// Unknown means that not enough could be seen to tell.
	Unknown Status = 4
)

// Verdict says what would happen at the next systemctl poweroff.
type Verdict struct {
	Status Status `json:"status"`
	// Text is the verdict in one or two sentences. Why has the reasons and further remarks. Do says what to do
	// about it.
	Text string   `json:"text"`
	Why  []string `json:"why,omitempty"`
	Do   []Step   `json:"do,omitempty"`
	// Drains says which agent drains the pods; "": none does, or its configuration is not known.
	Drains nodeplan.Agent `json:"drains,omitempty"`
}

// Step is one thing that an administrator can do.
type Step struct {
	// Text says what, and Command is a line for a root shell; one of them may be "".
	Text    string `json:"text,omitempty"`
	Command string `json:"command,omitempty"`
}

// set sets the status and the text of a verdict.
func (v *Verdict) set(status Status, format string, args ...any) {
	v.Status, v.Text = status, fmt.Sprintf(format, args...)
}

// addReason adds a line to v.Why.
func (v *Verdict) addReason(format string, args ...any) {
	v.Why = append(v.Why, fmt.Sprintf(format, args...))
}

// addStep adds a step to v.Do.
func (v *Verdict) addStep(text, command string) { v.Do = append(v.Do, Step{text, command}) }

// reload is the command that makes logind read its files again.
const reload = "systemctl kill --signal=HUP systemd-logind"

// Judge says what would happen at the next shutdown, without looking at the pods ([Verdict.AddPods] adds
// them). isConfigOfAgent says that State.Config is the configuration of the agent that holds the lock, given by the
// user; otherwise it is the kubelet's.
func (s *State) Judge(isConfigOfAgent bool) Verdict {
	var v Verdict
	kubelet, agent := s.findLock(login1.Lock.IsKubelets), s.findLock(login1.Lock.IsKubegraces)
	switch {
	case s.Logind == nil && s.Mask != "":
		v.set(Unheld, "nothing waits for the pods: systemd-logind is masked by %s, so no agent can hold an inhibitor lock or hear of the shutdown.", s.Mask)
		v.addStep("Unmask it, and restart the kubelet.", "systemctl unmask systemd-logind && systemctl start systemd-logind && systemctl restart kubelet")
	case s.Logind == nil:
		v.set(Unknown, "cannot be told: systemd-logind could not be asked.")
	case s.Logind.Limit() == 0 && (kubelet != nil || agent != nil):
		v.set(Unheld, "nothing waits for the pods: logind's limit is 0s%s, and then it ignores all locks that delay a shutdown.", s.byFile())
		if file := s.lastFile(); file != nil && file.Limit() == 0 {
			command := reload
			if kubelet != nil { // it raises the limit itself, but only at its start
				command += " && systemctl restart kubelet"
			}
			v.addStep("Remove InhibitDelayMaxSec=0 from "+file.Path+".", command)
		}
	case kubelet != nil && agent != nil:
		v.set(Lossy, "two agents stop the pods at the same time, the kubelet (PID %d) and %s (PID %d): each pod gets the shorter of their times.", kubelet.PID, agent.Who, agent.PID)
		v.addStep("Set shutdownGracePeriod of the kubelet to 0s and restart it, or remove "+agent.Who+".", "")
	case kubelet != nil:
		s.judgeKubelet(&v)
	case agent != nil:
		s.judgeAgent(&v, agent, isConfigOfAgent)
	default:
		if isJudged := s.judgeAgentWithoutLock(&v); !isJudged {
			s.judgeNoLock(&v)
		}
	}
	s.addRemarks(&v)
	return v
}

// neededByKubelet returns how long the kubelet's configuration asks the host to wait: the sum of its buckets.
func (s *State) neededByKubelet() time.Duration { return s.Config.Schedule().Total() }

// NeededSeconds returns how long the kubelet's configuration asks the host to wait; false if the configuration
// is not known.
func (s *State) NeededSeconds() (seconds float64, isKnown bool) {
	return s.neededByKubelet().Seconds(), s.ConfigSource != ""
}

// judgeKubelet judges a machine on which the kubelet holds its lock.
func (s *State) judgeKubelet(v *Verdict) {
	needed := s.neededByKubelet()
	switch {
	case s.ConfigSource == "":
		v.set(Unknown, "the kubelet holds the inhibitor lock, and logind waits for up to %s; whether that covers its configuration could not be seen.", LimitText(s.Logind.Limit()))
	case len(s.Config.Schedule()) == 0:
		v.set(Unknown, "the kubelet holds the inhibitor lock for another configuration than it has now: %s has no shutdownGracePeriod.", s.ConfigSource)
		v.addStep("Give what this prints with --config: it is the configuration that the kubelet uses.", "kubectl get --raw /api/v1/nodes/NODE/proxy/configz")
	case s.Logind.Limit() < needed:
		v.set(Lossy, "the kubelet drains for up to %s, and the host goes down after %s in the middle of it%s.", LimitText(needed), LimitText(s.Logind.Limit()), s.byFileOrDefault())
		v.addReason("The limit was lowered since the kubelet has taken its lock. After its next start it takes no lock at all.")
		s.addStepForKubelet(v, needed)
	default:
		v.set(Held, "the kubelet holds the inhibitor lock for up to %s.", LimitText(needed))
		v.Drains = nodeplan.Kubelet
	}
}

// judgeAgent judges a machine on which only an agent with kubegrace holds a lock. How long this agent asks the host to wait
// comes from the first of these that is known: the configuration that the user gave, the agent's own status, the drop-in
// that the agent has written for logind.
func (s *State) judgeAgent(v *Verdict, agent *login1.Lock, isConfigOfAgent bool) {
	v.set(Held, "%s (PID %d) holds the inhibitor lock for up to %s.", agent.Who, agent.PID, LimitText(s.Logind.Limit()))
	dropIn := s.kubegraceDropIn()
	switch {
	case isConfigOfAgent: // s.Config says nothing of the kubelet then; with Drains set, the caller plans the drain by s.Config
		v.Drains = nodeplan.Kubegrace
		return
	case s.Agent != nil:
		s.judgeByAgentStatus(v)
		return
	case dropIn != nil && s.Logind.Limit() < dropIn.Limit():
		v.set(Lossy, "%s (PID %d) asks for %s, and the host goes down after %s%s.", agent.Who, agent.PID, LimitText(dropIn.Limit()), LimitText(s.Logind.Limit()), s.byFile())
		s.addStepForAgent(v, dropIn.Limit())
	default:
		v.Status = Unknown
		v.Text += " Which pods lose time could not be seen: run it as root, or give the agent's configuration with --config."
	}
	if len(s.Config.Schedule()) > 0 {
		v.addReason("The kubelet is configured to drain too (%s, %s): beside %s it should not.", s.ConfigSource, LimitText(s.neededByKubelet()), agent.Who)
	}
}

// judgeByAgentStatus completes a verdict with what the agent's status says: what it works without, and what its pods lose.
func (s *State) judgeByAgentStatus(v *Verdict) {
	v.Why = append(v.Why, s.Agent.Missing...)
	if s.Agent.PodsUnknown {
		v.Status = Unknown
		v.Text += " Its pods are not known: the container runtime does not list them."
	} else {
		v.AddPods(s.Agent.PodCount, s.Agent.CutShort, s.Agent.LostSeconds)
	}
	if asked := duration.Of(s.Agent.AskedSeconds); s.Logind.Limit() < asked {
		v.addReason("kubegrace-node asks for %s, and the host waits for %s%s.", LimitText(asked), LimitText(s.Logind.Limit()), s.byFile())
		s.addStepForAgent(v, asked)
	}
}

// addStepForAgent adds to v.Do how to raise logind's limit to what an agent with kubegrace needs, if a file overrides the
// agent's drop-in. Unlike the kubelet, the agent need not be restarted: it notices the new limit.
func (s *State) addStepForAgent(v *Verdict, needed time.Duration) {
	if file := s.fileOverriding(KubegraceDropIn); file != nil {
		v.addStep(file.raiseToText(needed), reload)
	}
}

// raiseToText says how to raise the limit of a file to needed.
func (f LimitFile) raiseToText(needed time.Duration) string {
	return fmt.Sprintf("Set InhibitDelayMaxSec=%.0f or more in %s, or remove it there.", math.Ceil(needed.Seconds()), f.Path)
}

// byFile names, at the end of a sentence, the file that sets the limit which logind uses now: ", by FILE". If no file does, it
// returns "".
func (s *State) byFile() string {
	if file := s.lastFile(); file != nil && file.Limit() == s.Logind.Limit() {
		return ", by " + file.Path
	}
	return ""
}

// judgeAgentWithoutLock judges a machine on which kubegrace-node runs and holds no lock. If kubegrace-node does not
// run, it returns false and does not change v.
func (s *State) judgeAgentWithoutLock(v *Verdict) (isJudged bool) {
	switch {
	case s.Agent != nil && s.Agent.Drained: // it needs no lock, because there is no pod to wait for
		v.set(Held, "this machine is drained: kubegrace-node drain has stopped its pods, and kubegrace-node undrain withdraws that.")
		v.Why = append(v.Why, s.Agent.Missing...)
	case s.Agent != nil:
		v.set(Unheld, "nothing waits for the pods: kubegrace-node runs, and holds no lock.")
		v.Why = append(v.Why, s.Agent.Missing...)
		v.addStep("Read the log of the agent, which says why.", "journalctl --unit kubegrace-node")
	case s.couldNotSee("kubegrace-node"): // its socket exists, and this user may not open it
		v.set(Unknown, "kubegrace-node runs, and holds no lock: this machine is drained, or nothing waits for its pods. Only the agent can say which.")
	default:
		return false
	}
	return true
}

// judgeNoLock judges a machine on which no agent holds a lock. It finds out why the kubelet holds none.
func (s *State) judgeNoLock(v *Verdict) {
	v.Status = Unheld
	var cause string
	switch needed := s.neededByKubelet(); {
	case len(s.Kubelets) == 0 && s.couldNotSee("the processes"):
		cause = "no agent holds a lock."
	case len(s.Kubelets) == 0:
		cause = "no kubelet runs here, and no other agent holds a lock."
	case s.Logind.Preparing:
		cause = "a shutdown is pending, during which logind grants no lock, and " + s.Kubelets[0].text() + " has none."
		v.addStep("If the shutdown is called off: restart the kubelet, which tries once, at its start.", "systemctl restart kubelet")
	case s.ConfigSource == "":
		cause = s.Kubelets[0].text() + " holds no lock; why could not be seen."
	case len(s.Config.Schedule()) == 0:
		cause = s.Kubelets[0].text() + " has no graceful node shutdown: it is off in " + s.ConfigSource + "."
		v.addStep("Set shutdownGracePeriod and shutdownGracePeriodCriticalPods, and restart the kubelet.", "")
	case s.Logind.Limit() < needed:
		cause = fmt.Sprintf("%s needs %s and takes no lock for less, and logind waits for %s only%s.", s.Kubelets[0].text(), LimitText(needed), LimitText(s.Logind.Limit()), s.byFileOrDefault())
		s.addStepForKubelet(v, needed)
	case s.Logind.Limit() == logindconf.Unlimited && s.fileOverridingKubelet() != nil:
		cause = s.Kubelets[0].text() + " takes no lock: logind's limit is infinity" + s.byFileOrDefault() + ", and a kubelet takes that for less than nothing."
		s.addStepForKubelet(v, needed)
	default:
		cause = fmt.Sprintf("%s holds no lock, although logind's %s cover the %s of its configuration.", s.Kubelets[0].text(), LimitText(s.Logind.Limit()), LimitText(needed))
		v.addReason("A kubelet tries to take its lock once, at its start, and fails if a shutdown is pending then or logind's limit is too low.")
		v.addStep("Restart the kubelet.", "systemctl restart kubelet")
	}
	v.Text = "nothing waits for the pods: " + cause
	v.addReason("Without a lock systemd ends all containers at once, with SIGTERM, and with SIGKILL 1m30s later by default: no preStop hook runs.")
}

// byFileOrDefault returns the end of a sentence about logind's limit, which says where the limit comes from: ", by FILE", with
// a note if FILE overrides the kubelet's drop-in; ", its default" if no file sets a limit; or "" if that is not known.
func (s *State) byFileOrDefault() string {
	switch by := s.byFile(); {
	case s.lastFile() == nil && s.Logind.Limit() == logindconf.Default:
		return ", its default"
	case by != "" && s.fileOverridingKubelet() != nil:
		return by + ", which sorts after 99-kubelet.conf and so overrides it"
	default:
		return by
	}
}

// addStepForKubelet adds to v.Do how to raise logind's limit to what the kubelet needs. That depends on the file that
// overrides the kubelet's drop-in: there is none, an agent that no longer runs has left it, it is not in /etc, or an
// administrator has written it. Each step restarts the kubelet, because it takes its lock only at its start.
func (s *State) addStepForKubelet(v *Verdict, needed time.Duration) {
	file := s.fileOverridingKubelet()
	switch {
	case file == nil:
		v.addStep("Restart the kubelet: no file sorts after its drop-in, so it can raise the limit itself.", "systemctl restart kubelet")
	case s.isWriterGone(*file):
		v.addStep("Remove the file, which an agent that no longer runs has left.", "rm "+file.Path+" && "+reload+" && systemctl restart kubelet")
	case !strings.HasPrefix(file.Path, "/etc/"):
		v.addStep(fmt.Sprintf("Mask the file, or write one of its name with InhibitDelayMaxSec=%.0f or more.", needed.Seconds()),
			"ln -s /dev/null /etc/systemd/logind.conf.d/"+path.Base(file.Path)+" && "+reload+" && systemctl restart kubelet")
	default:
		v.addStep(file.raiseToText(needed), reload+" && systemctl restart kubelet")
	}
}

// isWriterGone reports whether the agent that wrote a file no longer runs on this machine. It is false if that
// is not certain.
func (s *State) isWriterGone(file LimitFile) bool {
	switch file.Writer {
	case "kubegrace":
		mayRun := s.Logind == nil || s.findLock(login1.Lock.IsKubegraces) != nil || s.Agent != nil || s.couldNotSee("kubegrace-node")
		return !mayRun
	case "kubelet":
		mayRun := len(s.Kubelets) > 0 || s.findLock(login1.Lock.IsKubelets) != nil || s.couldNotSee("the processes")
		return !mayRun
	}
	return false
}

// couldNotSee reports whether NotSeen has something of this name.
func (s *State) couldNotSee(what string) bool {
	return slices.ContainsFunc(s.NotSeen, func(unseen Unseen) bool { return unseen.What == what })
}

// addRemarks adds to v.Why what an administrator should know, although it does not change the verdict.
func (s *State) addRemarks(v *Verdict) {
	agents := map[string]string{"kubegrace": "kubegrace agent", "kubelet": "kubelet"} // by LimitFile.Writer
	for _, file := range s.LimitFiles {
		if s.isWriterGone(file) {
			v.addReason("%s is left over from a %s that is gone; it sets logind's limit to %s.", file.Path, agents[file.Writer], LimitText(file.Limit()))
		}
	}
	if s.Logind == nil {
		return
	}
	configured, source := logindconf.Default, "logind's default" // what logind would use if it read its files now
	if file := s.lastFile(); file != nil {
		configured, source = file.Limit(), file.Path
	}
	if configured != s.Logind.Limit() && !s.hasUnreadFiles {
		v.addReason("logind uses %s, and its files say %s (%s): it has not read them since they changed. It reads them at its next start.", LimitText(s.Logind.Limit()), LimitText(configured), source)
	}
	if s.Logind.Preparing && v.Status != Unheld {
		v.addReason("A shutdown is pending now.")
	}
}

// AddPods adds to a Held verdict what would happen to the pods, and makes it Lossy if pods are cut short. cutShort
// is their number, and lostSeconds the sum of the seconds that they lose. Other verdicts stay as they are.
func (v *Verdict) AddPods(pods, cutShort int, lostSeconds int64) {
	switch {
	case v.Status != Held:
	case pods == 0:
		v.Text += " It has no pods."
	case cutShort == 0:
		v.Text += fmt.Sprintf(" No pod is cut short, of %d.", pods)
	default:
		v.Status = Lossy
		v.Text += fmt.Sprintf(" Pods cut short: %d of %d; %s are lost.", cutShort, pods, LimitText(time.Duration(lostSeconds)*time.Second))
	}
}

// AddUnseen makes a Held verdict Unknown if something could not be seen ([State.NotSeen]). Call it last.
func (v *Verdict) AddUnseen(notSeen []Unseen) {
	if v.Status == Held && len(notSeen) > 0 {
		v.Status = Unknown
		v.Text += " Whether that is all could not be seen."
	}
}

// LimitText returns a limit of logind, or another duration, as text, such as 1m30s, or infinity.
func LimitText(d time.Duration) string {
	if d == logindconf.Unlimited {
		return "infinity"
	}
	return duration.Text(d)
}
