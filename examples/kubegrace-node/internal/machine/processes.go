package machine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Kubelet is a process that is a kubelet or, as k3s does, runs one inside itself.
type Kubelet struct {
	PID int `json:"pid"`
	// Program is the name of the program, such as kubelet or k3s.
	Program string `json:"program"`
	// ConfigFile, ConfigDir, Kubeconfig and HostName are values of its flags; ""
	// where it has none.
	ConfigFile string `json:"configFile,omitempty"`
	ConfigDir  string `json:"configDir,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	HostName   string `json:"hostName,omitempty"`

	gates   string // of its flags, as A=true,B=false
	process procfs.Proc
}

// embedders returns the programs that run a kubelet inside themselves. A program does so if one of the listed
// words is among its arguments, or always if there is no list.
func embedders() map[string][]string {
	return map[string][]string{"k3s": {"server", "agent"}, "rke2": {"server", "agent"}, "k0s": {"worker", "controller"}, "kubelite": nil, "hyperkube": {"kubelet"}}
}

// kubelets finds the kubelets among the processes in root's /proc. If some processes are hidden it returns
// those that it found, and an error.
func kubelets(root string) ([]Kubelet, error) {
	fs, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return nil, err
	}
	processes, err := fs.AllProcs()
	if err != nil {
		return nil, err
	}
	sort.Sort(processes)
	var found []Kubelet
	sees1 := false
	for _, process := range processes {
		words, err := process.CmdLine()
		if err != nil {
			continue // it has ended; or it is hidden, and then process 1 is hidden too, which is checked below
		}
		sees1 = sees1 || process.PID == 1
		if len(words) == 0 {
			continue // a thread of the kernel
		}
		if kubelet, ok := parseCommandLine(words); ok {
			kubelet.PID, kubelet.process = process.PID, process
			found = append(found, kubelet)
		}
	}
	if !sees1 {
		return found, errors.New("the processes of others are hidden from this user")
	}
	return found, nil
}

// parseCommandLine returns the kubelet that a command line starts; false if it starts none. Of a program that
// embeds a kubelet, such as k3s, only the name is known, because its flags are its own.
func parseCommandLine(words []string) (k Kubelet, ok bool) {
	k.Program = path.Base(words[0])
	following, embeds := embedders()[k.Program] // the words of which one must follow; nil: none need follow
	if embeds && following != nil {
		embeds = slices.ContainsFunc(words[1:], func(word string) bool { return slices.Contains(following, word) })
	}
	if k.Program != "kubelet" && !embeds {
		return Kubelet{}, false
	}
	flags := map[string]*string{
		"config": &k.ConfigFile, "config-dir": &k.ConfigDir, "kubeconfig": &k.Kubeconfig, "hostname-override": &k.HostName,
		"feature-gates": &k.gates,
	}
	if k.Program != "kubelet" && k.Program != "hyperkube" {
		flags = nil // --config is not that of the kubelet
	}
	for i, word := range words[1:] {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || flags[name] == nil {
			continue
		}
		if !hasValue && i+2 < len(words) {
			value = words[i+2] // the word behind this one, which is words[i+1]
		}
		*flags[name] = value
	}
	return k, true
}

// clockSlack is the largest error of a process's start time: the kernel gives the time of the boot in whole
// seconds.
const clockSlack = 2 * time.Second

// changedSince returns the first file that has changed since the kubelet started; "": none has, or the start
// is not known. A kubelet reads its configuration only at its start, so it does not know such a change. A
// change in the first 2 s after the start (clockSlack) is not reported: it may have come before. A folder
// stands for the files in it.
func (k Kubelet) changedSince(paths ...string) (changed string) {
	stat, err := k.process.Stat()
	if err != nil {
		return ""
	}
	seconds, err := stat.StartTime()
	if err != nil {
		return ""
	}
	start := time.UnixMilli(int64(seconds * 1000)).Add(clockSlack)
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(file string, _ os.DirEntry, _ error) error { // kubeletconfig.Load reports what cannot be read
			if info, err := os.Stat(file); err == nil && changed == "" && info.ModTime().After(start) {
				changed = file
			}
			return nil
		})
	}
	return changed
}

// gatesOf parses the value of --feature-gates. It leaves out what it cannot parse.
func gatesOf(text string) map[string]bool {
	gates := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if on, err := strconv.ParseBool(value); err == nil {
			gates[name] = on
		}
	}
	return gates
}

// text returns the words that stand for the kubelet in a sentence.
func (k Kubelet) text() string {
	if k.Program == "kubelet" {
		return fmt.Sprintf("the kubelet (PID %d)", k.PID)
	}
	return fmt.Sprintf("the kubelet in %s (PID %d)", k.Program, k.PID)
}
