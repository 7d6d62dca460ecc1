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

// programName is the default of Options.Who: operators look for the program in the output
// of systemd-inhibit --list.
func programName() string {
	if len(os.Args) == 0 || os.Args[0] == "" {
		return "kubegrace"
	}
	return filepath.Base(os.Args[0])
}

// DropInName is the default of Options.DropInName, the file name of the drop-in that
// raises logind's limit. logind sorts drop-ins by name across all directories, and the
// last one wins: the kubelet's 99-kubelet.conf loses to every name that begins with a
// letter, such as unattended-upgrades-logind-maxdelay.conf (k/k#102818, k/k#107043).
const DropInName = "zz-kubegrace.conf"

// Options configure a [Source]. The zero value uses the system bus of this host and
// systemd's own directories.
type Options struct {
	// Address is the D-Bus address of the bus that logind is on. Empty means the system
	// bus, at DBUS_SYSTEM_BUS_ADDRESS if that is set.
	Address string

	// Who and Why describe the inhibitor in systemd-inhibit --list. Empty means the name of the
	// program, and "Pods need time to end before the node shuts down". A kubelet has "kubelet" and
	// "Kubelet needs time to handle node shutdown" (pkg/kubelet/nodeshutdown).
	Who, Why string

	// HostRoot is the absolute path of the directory that has the host's /etc, /run and
	// /usr, for an agent in a container. Empty means /.
	HostRoot string
	// DropInDirs are the directories for the drop-in: absolute paths on the host, the preferred one
	// first. The first writable one is used. Empty means /etc/systemd/logind.conf.d and then, for
	// hosts with a read-only /etc, /run/systemd/logind.conf.d. The drop-in outlives the agent;
	// [Source.RemoveDropIn] removes it.
	DropInDirs []string
	// DropInName is the file name of the drop-in. It must end with .conf. Empty means the
	// constant [DropInName].
	DropInName string

	// NoFDStore keeps the lock out of systemd's FD store. By default a copy is stored
	// there if NOTIFY_SOCKET is set, so that the delay does not end when the agent dies.
	// The unit needs FileDescriptorStoreMax=.
	NoFDStore bool

	times times // tests have shorter ones
}

// times are those of a session. 0 means the default.
type times struct {
	// reload bounds a reload of logind together with the wait until logind shows the new limit,
	// which it may do some time after the reload. The default is 3 s.
	reload time.Duration
	// poll is how often PreparingForShutdown is read while a shutdown is under way. logind sends no
	// signal when a delayed shutdown is cancelled (v257 and later), nor when logind was restarted.
	// The default is 500 ms.
	poll time.Duration
	// verify is how often the session checks that logind still lists the inhibitor. The default is
	// 30 s.
	verify time.Duration
}

// withDefaults returns a copy with the default of every empty field but Address.
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

// validate joins an error for every invalid field.
func (o Options) validate() error {
	var errs []error
	if name := o.DropInName; name != "" && (filepath.Base(name) != name || !strings.HasSuffix(name, ".conf") || len(name) == len(".conf")) {
		errs = append(errs, fmt.Errorf("DropInName %q: must be a file name that ends with .conf, logind reads no other", name))
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
