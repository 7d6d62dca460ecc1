package logind

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// defaultWhy is the default of Options.Why.
const defaultWhy = "Pods need time to end before the node shuts down"

// programName returns the default of Options.Who, which systemd-inhibit --list shows.
func programName() string {
	if len(os.Args) == 0 || os.Args[0] == "" {
		return "kubegrace"
	}
	return filepath.Base(os.Args[0])
}

// DropInName is the default of Options.DropInName. logind sorts drop-ins by name across all
// directories, and the last one wins: the kubelet's 99-kubelet.conf loses to every name that begins
// with a letter, such as unattended-upgrades-logind-maxdelay.conf (k/k#102818, k/k#107043).
const DropInName = "zz-kubegrace.conf"

// Options configures a [Source]. The zero value uses this host's system bus and systemd's directories.
type Options struct {
	// Address is the D-Bus address of logind's bus. Empty: DBUS_SYSTEM_BUS_ADDRESS, or the system bus.
	Address string

	// Who and Why describe the lock in systemd-inhibit --list. Empty: the program's name, and "Pods
	// need time to end before the node shuts down". The kubelet has "kubelet" and "Kubelet needs time
	// to handle node shutdown" (pkg/kubelet/nodeshutdown).
	Who, Why string

	// HostRoot is the absolute path of the directory with the host's /etc, /run and /usr, for an agent
	// in a container. Empty: /.
	HostRoot string
	// DropInDirs are directories for the drop-in that raises logind's limit (InhibitDelayMaxSec), as
	// absolute paths on the host. The first writable one is used. Empty: /etc/systemd/logind.conf.d, or /run/systemd/logind.conf.d if /etc is read-only.
	DropInDirs []string
	// DropInName is the file name of that drop-in. It must end with .conf. Empty: zz-kubegrace.conf
	// (the constant [DropInName]).
	DropInName string

	// NoFDStore disables systemd's FD store. By default a copy of the lock is stored if NOTIFY_SOCKET
	// is set, so that the delay does not end when the agent dies. The unit needs
	// FileDescriptorStoreMax=.
	NoFDStore bool

	times times // tests shorten these times
}

// times are the timeouts and intervals of a session. 0: the default.
type times struct {
	// reload is the timeout of a reload of logind and the wait for the new limit. Default: 3 s.
	reload time.Duration
	// poll is the interval at which the session asks during a shutdown whether the shutdown is still in
	// progress. logind sends no signal when a delayed shutdown is cancelled (v257 and later) or when logind
	// itself was restarted. Default: 500 ms.
	poll time.Duration
	// verify is the interval at which the session checks that logind still lists the lock. Default: 30 s.
	verify time.Duration
}

// withDefaults returns the options with the default of each field that is zero.
func (o Options) withDefaults() Options {
	o.Who = cmp.Or(o.Who, programName())
	o.Why = cmp.Or(o.Why, defaultWhy)
	o.HostRoot = cmp.Or(o.HostRoot, "/")
	o.DropInName = cmp.Or(o.DropInName, DropInName)
	o.times.reload = cmp.Or(o.times.reload, 3*time.Second)
	o.times.poll = cmp.Or(o.times.poll, 500*time.Millisecond)
	o.times.verify = cmp.Or(o.times.verify, 30*time.Second)
	o.DropInDirs = slices.Clone(o.DropInDirs)
	if len(o.DropInDirs) == 0 {
		o.DropInDirs = []string{"/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"}
	}
	return o
}

// validate returns an error that names each option with which logind would not read the drop-in.
func (o Options) validate() error {
	var errs []error
	if name := o.DropInName; name != "" {
		isFileName := filepath.Base(name) == name
		isConf := strings.HasSuffix(name, ".conf") && name != ".conf"
		if !isFileName || !isConf {
			errs = append(errs, fmt.Errorf("DropInName %q: must be a file name that ends with .conf, logind reads no other", name))
		}
	}
	for _, dir := range o.DropInDirs {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("DropInDirs %q: must be an absolute path", dir))
		}
	}
	if o.HostRoot != "" && !filepath.IsAbs(o.HostRoot) {
		errs = append(errs, fmt.Errorf("HostRoot %q: must be an absolute path", o.HostRoot))
	}
	return errors.Join(errs...)
}
