package machine

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
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

	gates map[string]bool // of its flags
}

// kubelets returns the kubelets among the processes of a machine whose /proc is at this path. If processes are hidden from
// this user, it returns those that it can see, and an error.
func kubelets(proc string) ([]Kubelet, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return nil, err
	}
	processes, err := fs.AllProcs()
	if err != nil {
		return nil, err
	}
	sort.Sort(processes)
	var found []Kubelet
	seesInit := false // process 1, which belongs to root
	for _, process := range processes {
		words, err := process.CmdLine()
		if err != nil {
			continue // the process has ended, or is hidden; if it is hidden, so is process 1
		}
		seesInit = seesInit || process.PID == 1
		if len(words) == 0 {
			continue // a thread of the kernel
		}
		if kubelet, ok := parseCommandLine(words); ok {
			kubelet.PID = process.PID
			found = append(found, kubelet)
		}
	}
	if !seesInit {
		return found, errors.New("the processes of others are hidden from this user")
	}
	return found, nil
}

// parseCommandLine returns the kubelet that a command line starts; false if it starts none. Of a program that
// embeds a kubelet, such as k3s, only the name is known, because its flags are not those of a kubelet.
func parseCommandLine(words []string) (k Kubelet, isKubelet bool) {
	k.Program = path.Base(words[0])
	if k.Program != "kubelet" {
		// k3s and RKE2 replace their command line by a single word, such as "/usr/local/bin/k3s server".
		words = strings.Fields(strings.Join(words, " "))
		if len(words) == 0 {
			return k, false
		}
		k.Program = path.Base(words[0])
		canEmbedKubelet := slices.Contains([]string{"k3s", "rke2", "k0s"}, k.Program)
		startsKubelet := func(word string) bool {
			return slices.Contains([]string{"server", "agent", "worker", "controller"}, word)
		}
		return k, canEmbedKubelet && slices.ContainsFunc(words[1:], startsKubelet)
	}
	flags := pflag.NewFlagSet(k.Program, pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&k.ConfigFile, "config", "", "")
	flags.StringVar(&k.ConfigDir, "config-dir", "", "")
	flags.StringVar(&k.Kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&k.HostName, "hostname-override", "", "")
	flags.Var(cliflag.NewMapStringBool(&k.gates), "feature-gates", "")
	_ = flags.Parse(words[1:]) // cannot fail for a kubelet that has started
	return k, true
}

// text returns the words that stand for the kubelet in a sentence.
func (k Kubelet) text() string {
	if k.Program == "kubelet" {
		return fmt.Sprintf("the kubelet (PID %d)", k.PID)
	}
	return fmt.Sprintf("the kubelet in %s (PID %d)", k.Program, k.PID)
}
