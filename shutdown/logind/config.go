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
	// delaySetting is read from the section [Login].
	delaySetting = "InhibitDelayMaxSec"
	// delayDefault holds where no file has the setting (logind.conf(5)).
	delayDefault = 5 * time.Second
)

// setting is a delay and the file that sets it; "" is logind itself.
type setting struct {
	file  string
	delay time.Duration
}

// configured gives the setting that logind takes from its files, as if the files
// for which ignored is true did not exist. A file that cannot be read or parsed
// sets nothing.
func configured(host fs.FS, ignored func(file string) bool) setting {
	winner := setting{delay: delayDefault}
	for _, file := range configFiles(host, ignored) {
		if delay, ok := delayIn(host, file); ok {
			winner = setting{file: "/" + file, delay: delay}
		}
	}
	return winner
}

// configFiles lists what logind reads, the last one wins: the main file, then
// the drop-ins by file name, whatever their directory. Of files with the same
// name only the one in the first directory is read (systemd.unit(5)).
func configFiles(host fs.FS, ignored func(file string) bool) []string {
	var mains []string
	dropIns := map[string]string{} // file name: path
	// By precedence. v252 has only the main file of /etc; the others are of v257.
	for _, dir := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} {
		main := path.Join(dir, "systemd/logind.conf")
		if _, err := fs.Stat(host, main); err == nil {
			mains = append(mains, main)
		}
		matches, _ := fs.Glob(host, main+".d/*.conf") // the pattern is a good one
		for _, file := range matches {
			if _, found := dropIns[path.Base(file)]; !found && !ignored("/"+file) {
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

// delayIn reads the setting from one file, in which the last valid line wins.
func delayIn(host fs.FS, file string) (delay time.Duration, ok bool) {
	// A mask is a device, and a pipe would never end.
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
