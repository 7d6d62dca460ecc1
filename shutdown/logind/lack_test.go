//go:build linux

package logind_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// missingFeatures is a log sink that collects the features that log lines call missing.
type missingFeatures struct {
	mu    sync.Mutex
	lines []string
}

// The methods of klog.LogSink. Info records the value of the key "missing" up to its first colon.
func (*missingFeatures) Init(klog.RuntimeInfo)            {}
func (*missingFeatures) Enabled(int) bool                 { return true }
func (*missingFeatures) Error(error, string, ...any)      {}
func (l *missingFeatures) WithValues(...any) klog.LogSink { return l }
func (l *missingFeatures) WithName(string) klog.LogSink   { return l }
func (l *missingFeatures) Info(_ int, _ string, pairs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(pairs, any("missing")); i >= 0 {
		what, _, _ := strings.Cut(pairs[i+1].(string), ":")
		l.lines = append(l.lines, what)
	}
}

// missing returns the features that the log calls missing, in order.
func (l *missingFeatures) missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// A host lacks one, two or all optional features. All the same the manager takes its lock, raises logind's limit, and kills its two
// pods when logind announces a shutdown. Each missing feature is logged once.
func TestABusWithoutOptionalFeaturesWorks(t *testing.T) {
	lines := map[logindfake.Lack][]string{ // what is logged for each; nil: nothing, because the feature is not used
		logindfake.LackOtherHandshakes: nil,
		logindfake.LackConnections:     nil,
		logindfake.LackInterface:       nil,
		logindfake.LackAgreement:       {"NEGOTIATE_UNIX_FD"},
		logindfake.LackAnswer:          {"NEGOTIATE_UNIX_FD"},
		logindfake.LackOwner:           {"GetNameOwner"},
		logindfake.LackOwnerChanges:    {"NameOwnerChanged"},
		logindfake.LackMatches:         {"matches by sender"},
		logindfake.LackSenders:         {"senders of signals"},
		logindfake.LackProcessIDs:      {"ListInhibitors"},
		logindfake.LackMetadata:        {"PrepareForShutdownWithMetadata"},
		logindfake.LackPreparing:       {"PreparingForShutdown"},
		logindfake.LackList:            {"ListInhibitors"},
	}
	require.Len(t, lines, len(logindfake.Lacks()))
	tests := map[string][]logindfake.Lack{
		"nothing": nil,
		"all":     logindfake.Lacks(),
		"Talos": {
			logindfake.LackOtherHandshakes, logindfake.LackConnections, logindfake.LackOwner, logindfake.LackOwnerChanges,
			logindfake.LackSenders, logindfake.LackInterface, logindfake.LackProcessIDs, logindfake.LackPreparing, logindfake.LackList,
		},
	}
	skipsPairs := need.Shortened(t, "each two things that a host lacks")
	for n, lack := range logindfake.Lacks() {
		tests[string(lack)] = []logindfake.Lack{lack}
		for _, other := range logindfake.Lacks()[:n] {
			if !skipsPairs {
				tests[string(other)+" and "+string(lack)] = []logindfake.Lack{other, lack}
			}
		}
	}
	for name, lacks := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var missing []string
			for _, lack := range lacks {
				missing = append(missing, lines[lack]...)
			}
			slices.Sort(missing)
			missing = slices.Compact(missing) // two lacks may be the same missing feature, which is logged once
			broker := logindfake.StartBroker(t, lacks...)
			broker.Login1.SetKind("reboot")
			broker.Systemd1.OnHangUp(func() { broker.Login1.SetLimit(time.Minute) }) // what the manager's reload of logind does
			source, err := logind.New(logind.Options{Address: broker.Address, HostRoot: t.TempDir(), NoFDStore: true}.With(logind.Times{Poll: 10 * time.Millisecond}))
			require.NoError(t, err)
			require.NoError(t, source.Available(t.Context()))
			log, killer := new(missingFeatures), new(shutdowntest.Killer)
			manager := runManagerIn(klog.NewContext(t.Context(), klog.New(log)), t, source, shutdown.Options{Config: buckets, Killer: killer})

			require.Eventually(t, func() bool { return manager.Inhibitor().Held && manager.Inhibitor().Err == nil }, testTimeout, time.Millisecond)
			require.Equal(t, time.Minute, manager.Inhibitor().Granted)
			held := broker.Login1.Held()
			require.Len(t, held, 1)
			broker.Login1.Prepare(true) // announces a shutdown
			awaitReleased(t, held[0])
			require.Len(t, killer.Kills(), 2)
			require.ElementsMatch(t, missing, log.missing())
		})
	}
}
