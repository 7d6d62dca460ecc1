package machine

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

const (
	// DefaultLimit is logind's limit where no file sets one (logind.conf(5)).
	DefaultLimit = 5 * time.Second
	// KubeletDropIn is the drop-in by which a kubelet raises the limit.
	KubeletDropIn = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	// kubegraceMark is the first line of the drop-ins that kubegrace writes (package logind).
	kubegraceMark = "# Written by kubegrace"
)

// LimitFile is a file of logind that sets its limit, or could not be read.
type LimitFile struct {
	// Path is the path on the machine.
	Path string `json:"path"`
	// Seconds is the limit that the file sets.
	Seconds float64 `json:"seconds"`
	// Writer is who has written the file: kubegrace, kubelet, or "" for somebody else.
	Writer string `json:"writer,omitempty"`

	limit time.Duration
	err   error // the file could not be read
}

// limitFiles returns the files that set logind's limit in the order in which logind reads them: the
// last one wins. Those that cannot be read are the second result.
func limitFiles(root string) (files, unread []LimitFile) {
	names, errs := configFiles(root)
	for _, name := range names {
		file := readLimit(root, name)
		switch {
		case file == nil:
		case file.err != nil:
			unread = append(unread, *file)
		default:
			files = append(files, *file)
		}
	}
	return files, append(unread, errs...)
}

// configFiles lists the files that logind reads: one main file and then the drop-ins, sorted by name
// across all folders. Of several drop-ins with the same name logind reads the one of the first folder
// (systemd.unit(5)).
func configFiles(root string) (names []string, unread []LimitFile) {
	main := ""
	dropIns := map[string]string{} // file name: path
	for _, folder := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"} {
		file := folder + "/systemd/logind.conf"
		if _, err := os.Stat(filepath.Join(root, file)); err == nil && main == "" {
			main = file
		}
		entries, err := os.ReadDir(filepath.Join(root, file+".d"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = append(unread, LimitFile{Path: file + ".d", err: err})
		}
		for _, entry := range entries {
			if _, found := dropIns[entry.Name()]; !found && path.Ext(entry.Name()) == ".conf" {
				dropIns[entry.Name()] = file + ".d/" + entry.Name()
			}
		}
	}
	if main != "" {
		names = append(names, main)
	}
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		names = append(names, dropIns[name])
	}
	return names, unread
}

// readLimit reads one file. It returns nil if the file is a mask, a link to /dev/null, or sets no
// limit. The last valid line wins, as with logind.
func readLimit(root, name string) *LimitFile {
	full := filepath.Join(root, name)
	if info, err := os.Stat(full); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	text, err := document.ReadFile(full)
	if err != nil {
		return &LimitFile{Path: name, err: err}
	}
	options, err := unit.DeserializeOptions(bytes.NewReader(text))
	if err != nil {
		return nil // logind ignores it
	}
	var file *LimitFile
	for _, option := range options {
		if option.Section != "Login" || option.Name != "InhibitDelayMaxSec" {
			continue
		}
		if limit, err := parseTimespan(option.Value); err == nil {
			file = &LimitFile{Path: name, Seconds: limit.Seconds(), limit: limit}
		}
	}
	switch {
	case file == nil:
	case bytes.HasPrefix(text, []byte(kubegraceMark)):
		file.Writer = "kubegrace"
	case name == KubeletDropIn:
		file.Writer = "kubelet"
	}
	return file
}

// winner returns the file whose limit counts: the last one, as logind reads them in this order; nil: none
// sets the limit.
func winner(files []LimitFile) *LimitFile {
	if len(files) == 0 {
		return nil
	}
	return &files[len(files)-1]
}

// KubegraceDropIn is the name of the drop-in by which an agent with kubegrace raises the limit.
const KubegraceDropIn = "zz-kubegrace.conf"

// beyond returns the file that wins against a drop-in of this name; nil: none.
func beyond(files []LimitFile, dropIn string) *LimitFile {
	last := winner(files)
	if last == nil || path.Base(last.Path) <= dropIn || path.Ext(path.Dir(last.Path)) != ".d" {
		return nil
	}
	return last
}

// beyondKubelet returns the file that wins against the drop-in which a kubelet writes; nil: none.
func beyondKubelet(files []LimitFile) *LimitFile { return beyond(files, path.Base(KubeletDropIn)) }
