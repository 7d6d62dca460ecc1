package machine

import (
	"bytes"
	"os"
	"path"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/internal/logindconf"
)

const (
	// KubeletDropIn is the drop-in file by which a kubelet raises logind's InhibitDelayMaxSec.
	KubeletDropIn = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	// KubegraceDropIn is the name of the drop-in file by which an agent with kubegrace raises InhibitDelayMaxSec. It is no
	// path, because the folder is an option of package logind.
	KubegraceDropIn = "zz-kubegrace.conf"
	// kubegraceMark is the first line of the drop-ins that kubegrace writes (package logind).
	kubegraceMark = "# Written by kubegrace"
)

// LimitFile is a configuration file of logind that sets InhibitDelayMaxSec.
type LimitFile struct {
	// Path is the path on the machine, without Root.
	Path string `json:"path"`
	// Seconds is the limit that the file sets.
	Seconds float64 `json:"seconds"`
	// Writer is who has written the file: kubegrace, kubelet, or "" for somebody else.
	Writer string `json:"writer,omitempty"`
}

// Limit returns Seconds; [logindconf.Unlimited] means that the file sets no limit.
func (f LimitFile) Limit() time.Duration { return duration.Of(f.Seconds) }

// lookAtLimitFiles reads the files that set logind's limit, and finds out which of them an agent has written.
// A file that cannot be read sets hasUnreadFiles, because it could be the one that sets the limit.
func (s *State) lookAtLimitFiles() {
	for _, file := range logindconf.Files(os.DirFS(s.options.Root)) {
		if file.Err != nil {
			s.hasUnreadFiles = true
			s.addUnseen(file.Path, file.Err, "")
			continue
		}
		writer := ""
		switch {
		case bytes.HasPrefix(file.Text, []byte(kubegraceMark)):
			writer = "kubegrace"
		case file.Path == KubeletDropIn:
			writer = "kubelet"
		}
		s.LimitFiles = append(s.LimitFiles, LimitFile{Path: file.Path, Seconds: file.Limit.Seconds(), Writer: writer})
	}
}

// lastFile returns the file whose limit logind uses, which is the last one it reads; nil: no file sets the limit.
func (s *State) lastFile() *LimitFile {
	if len(s.LimitFiles) == 0 {
		return nil
	}
	return &s.LimitFiles[len(s.LimitFiles)-1]
}

// fileOverriding returns the file that overrides the drop-in with this name: the last one that sets the limit, if it is a
// drop-in whose name sorts later; nil: there is none. logind.conf overrides no drop-in, because logind reads it first.
func (s *State) fileOverriding(dropIn string) *LimitFile {
	last := s.lastFile()
	if last == nil {
		return nil
	}
	isDropIn := path.Ext(path.Dir(last.Path)) == ".d"
	sortsLater := path.Base(last.Path) > dropIn
	if isDropIn && sortsLater {
		return last
	}
	return nil
}

// fileOverridingKubelet returns the file that overrides the drop-in which a kubelet writes; nil: none does.
func (s *State) fileOverridingKubelet() *LimitFile { return s.fileOverriding(path.Base(KubeletDropIn)) }
