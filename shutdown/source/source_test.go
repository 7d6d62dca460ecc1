package source_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

func TestDelayCappedErrorNamesWhatIsKnown(t *testing.T) {
	const text = "the host delays its shutdown by 5s at most, 30s was asked for"
	for want, e := range map[string]source.DelayCappedError{
		text: {},
		text + "; InhibitDelayMaxSec is set by /etc/a.conf": {Setting: "InhibitDelayMaxSec", Winner: "/etc/a.conf"},
		text + "; raise InhibitDelayMaxSec":                 {Setting: "InhibitDelayMaxSec"},
		text + "; the limit is set by /etc/a.conf":          {Winner: "/etc/a.conf"},
	} {
		e.Requested, e.Granted = 30*time.Second, 5*time.Second
		require.EqualError(t, &e, want)
	}
}
