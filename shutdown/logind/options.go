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

// defaultWhy is what the lock says of its purpose.
const defaultWhy = "Pods need time to end before the node shuts down"

// programName is what the lock says of its holder: operators look for it in the
// output of systemd-inhibit --list.
func programName() string {
	if len(os.Args) == 0 || os.Args[0] == "" {
		return "kubegrace"
	}
	return filepath.Base(os.Args[0])
}

// DropInName is the default name of the drop-in file that raises logind's
// limit. logind lets the last file name win, whatever its directory: the
// kubelet's 99-kubelet.conf loses to every name that begins with a letter, such
// as unattended-upgrades-logind-maxdelay.conf (k/k#102818, k/k#107043).
const DropInName = "zz-kubegrace.conf"

// Options says how logind is reached and raised. The zero value is the system
// bus of this host and the directories of systemd.
type Options struct {
	// Address is the D-Bus address of the bus that logind is on. "": the
	// system bus, where DBUS_SYSTEM_BUS_ADDRESS says it is.
	Address string

	// Who and Why are shown beside the lock by systemd-inhibit --list. "": the name of
	// the program, and that pods need time. A kubelet has "kubelet" and "Kubelet needs
	// time to handle node shutdown" (pkg/kubelet/nodeshutdown).
	Who, Why string

	// HostRoot is the directory under which the host's /etc, /run and /usr are
	// to be seen, for an agent in a container. "": /.
	HostRoot string
	// DropInDirs are the directories of the drop-in, below HostRoot; the first
	// that can be written is taken. Empty: /etc/systemd/logind.conf.d, and
	// /run/systemd/logind.conf.d for hosts whose /etc is read-only. The file outlives
	// the agent; [Source.RemoveDropIn] removes it.
	DropInDirs []string
	// DropInName is the name of the drop-in; "": the constant of that name.
	DropInName string

	// ReloadTimeout bounds the wait for logind to show a new limit after a
	// reload, which it does some time after the reload was asked for. 0: 3 s.
	ReloadTimeout time.Duration
	// PollInterval is how often PreparingForShutdown is read while a shutdown
	// is under way: logind announces no cancellation when a delayed shutdown is
	// cancelled (v257 and later), nor when it was restarted. 0: 500 ms.
	PollInterval time.Duration
	// VerifyInterval is how often the lock is looked for in logind's list of
	// inhibitors. 0: 30 s.
	VerifyInterval time.Duration

	// NoFDStore keeps the lock out of systemd's FD store. By default a copy is
	// kept there where NOTIFY_SOCKET is set, so that the death of the agent does
	// not end the delay (the unit needs FileDescriptorStoreMax=).
	NoFDStore bool
}

// withDefaults gives a copy in which nothing is left empty but Address.
func (o Options) withDefaults() Options {
	o.Who = cmp.Or(o.Who, programName())
	o.Why = cmp.Or(o.Why, defaultWhy)
	o.HostRoot = cmp.Or(o.HostRoot, "/")
	o.DropInName = cmp.Or(o.DropInName, DropInName)
	o.ReloadTimeout = cmp.Or(o.ReloadTimeout, 3*time.Second)
	o.PollInterval = cmp.Or(o.PollInterval, 500*time.Millisecond)
	o.VerifyInterval = cmp.Or(o.VerifyInterval, 30*time.Second)
	o.DropInDirs = slices.Clone(o.DropInDirs)
	if len(o.DropInDirs) == 0 {
		o.DropInDirs = []string{"/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"}
	}
	return o
}

// validate names every field that cannot be used, with its value.
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
	errs = append(errs,
		notNegative("ReloadTimeout", o.ReloadTimeout),
		notNegative("PollInterval", o.PollInterval),
		notNegative("VerifyInterval", o.VerifyInterval))
	return errors.Join(errs...)
}

func notNegative(field string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s %v: must not be negative", field, d)
	}
	return nil
}
