//go:build linux

package logind

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

const (
	// delaySetting is in section Login of logind.conf.
	delaySetting = "InhibitDelayMaxSec"
	// delayDefault is logind's value without the setting (logind.conf(5)).
	delayDefault = 5 * time.Second
)

// setting is a value of InhibitDelayMaxSec and the file that sets it; "" for logind's default.
type setting struct {
	file  string
	delay time.Duration
}

// configured returns what logind's files set, as if the drop-ins at the paths ignored did not exist. Like
// logind it skips files that cannot be read or parsed.
func configured(host fs.FS, ignored []string) setting {
	winner := setting{delay: delayDefault}
	for _, file := range configFiles(host, ignored) {
		if delay, ok := delayIn(host, file); ok {
			winner = setting{file: "/" + file, delay: delay}
		}
	}
	return winner
}

// configFiles lists the files that logind reads, in its order; the last one wins. These are one main
// file, and the drop-ins sorted by name across all directories. Of drop-ins with the same name only the
// one in the first directory is read (systemd.unit(5)).
func configFiles(host fs.FS, ignored []string) []string {
	var mains []string
	dropIns := map[string]string{} // file name: path
	// The directories are in order of precedence. systemd 252 reads only the main file in /etc. systemd 257
	// reads the main files in the other directories too.
	for _, dir := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} {
		main := path.Join(dir, "systemd/logind.conf")
		if _, err := fs.Stat(host, main); err == nil {
			mains = append(mains, main)
		}
		matches, _ := fs.Glob(host, main+".d/*.conf") // the pattern is constant and well-formed
		for _, file := range matches {
			if _, found := dropIns[path.Base(file)]; !found && !slices.Contains(ignored, "/"+file) {
				dropIns[path.Base(file)] = file
			}
		}
	}
	files := mains[:min(len(mains), 1)]
	for _, name := range slices.Sorted(maps.Keys(dropIns)) {
		files = append(files, dropIns[name])
	}
	return files
}

// delayIn reads InhibitDelayMaxSec from one file; ok is false if the file does not set it. The last valid line
// wins.
func delayIn(host fs.FS, file string) (delay time.Duration, ok bool) {
	// Masks are links to /dev/null, and reading a pipe could block forever.
	if info, err := fs.Stat(host, file); err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	content, err := fs.ReadFile(host, file)
	if err != nil {
		return 0, false
	}
	options, err := unit.DeserializeOptions(bytes.NewReader(content))
	if err != nil {
		return 0, false
	}
	for _, option := range options {
		if option.Section != "Login" || option.Name != delaySetting {
			continue
		}
		if value, err := parseTimespan(option.Value); err == nil {
			delay, ok = value, true
		}
	}
	return delay, ok
}
