package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/validation"
)

// validateSignal returns the errors of a container with this stop signal.
func validateSignal(s v1.Signal, os *v1.PodOS) field.ErrorList {
	return validate(spec(withContainer(v1.Container{Lifecycle: signal(s)}), func(p *v1.PodSpec) { p.OS = os }))
}

// linux returns the names in KEP-4960: 34 signals and 31 real-time signals.
func linux() (names []string) {
	names = strings.Fields(`SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT
		SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN
		SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMAX`)
	for i := 1; i <= 15; i++ {
		names = append(names, fmt.Sprintf("SIGRTMIN+%d", i))
	}
	for i := 1; i <= 14; i++ {
		names = append(names, fmt.Sprintf("SIGRTMAX-%d", i))
	}
	return names
}

// All 65 signals of KEP-4960 are valid, with exactly these names. The error for another name lists all of them.
func TestStopSignalsOfLinux(t *testing.T) {
	require.Len(t, linux(), 65)
	for _, name := range linux() {
		require.Nil(t, validateSignal(v1.Signal(name), &v1.PodOS{Name: v1.Linux}), name)
	}
	for _, name := range []v1.Signal{"", "TERM", "sigterm", "SIGRTMIN+16", "SIGRTMAX-15", "SIGTERM ", "15"} {
		errs := validateSignal(name, &v1.PodOS{Name: v1.Linux})
		require.Len(t, errs, 1, name)
		require.Equal(t, field.ErrorTypeNotSupported, errs[0].Type)
		require.Equal(t, name, errs[0].BadValue)
		require.Equal(t, "spec.containers[0].lifecycle.stopSignal", errs[0].Field)
		require.True(t, strings.HasPrefix(errs[0].Detail, `supported values: "SIGABRT", "SIGALRM", `), errs[0].Detail)
		require.Equal(t, 65, strings.Count(errs[0].Detail, `"SIG`))
	}
}

// Windows knows only SIGKILL and SIGTERM.
func TestStopSignalsOfWindows(t *testing.T) {
	windows := &v1.PodOS{Name: v1.Windows}
	require.Nil(t, validateSignal(v1.SIGTERM, windows))
	require.Nil(t, validateSignal(v1.SIGKILL, windows))
	requireErrors(t, validateSignal(v1.SIGHUP, windows),
		`spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGHUP": supported values: "SIGKILL", "SIGTERM"`)
}

// Which signals are valid depends on spec.os.name. Without spec.os any stop signal is an error. With an empty or unknown OS name no
// stop signal is: another check of the API server refuses the name itself.
func TestStopSignalRequiresTheOSName(t *testing.T) {
	const want = "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"
	noOS, noName, unknownName := (*v1.PodOS)(nil), &v1.PodOS{}, &v1.PodOS{Name: "plan9"}
	requireErrors(t, validateSignal(v1.SIGTERM, noOS), want)
	require.Nil(t, validateSignal("nonsense", noName))
	require.Nil(t, validateSignal("nonsense", unknownName))
}

// With the feature off, any stop signal is forbidden, and its name is not checked.
func TestStopSignalWithItsFeatureOff(t *testing.T) {
	opts := validation.Options{NoStopSignals: true}
	errs := validation.ValidatePodTermination(spec(withContainer(v1.Container{Lifecycle: signal("nonsense")})), opts, field.NewPath("spec"))
	requireErrors(t, errs, "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set when feature gate ContainerStopSignals is disabled")
}
