package nodeshutdown

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// The log lines in README.md are those of a shutdown, in this order.
func TestREADMEShowsTheLog(t *testing.T) {
	page, err := os.ReadFile("../../../../README.md")
	require.NoError(t, err)
	var shown []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, `    "`) {
			shown = append(shown, strings.TrimSpace(line))
		}
	}
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		const graceSeconds = 30
		k := newKubelet(shutdowntest.Pod("web", regular, graceSeconds), shutdowntest.Pod("dns", critical, graceSeconds))
		conf := k.defaultConfig()
		conf.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log), textlogger.Verbosity(1)))
		k.start(t, conf)
		synctest.Wait()
		k.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(time.Minute)
	})
	var logged []string
	for line := range strings.Lines(log.String()) {
		_, text, found := strings.Cut(line, "] ") // after the time and the file
		require.True(t, found, line)
		logged = append(logged, strings.TrimSpace(text))
	}
	require.Equal(t, shown, logged)
}
