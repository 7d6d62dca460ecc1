package shutdown

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Every field of the report is filled if the shutdown and the pods have all of their fields.
func TestTheReportFillsEveryField(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	report := reportOf(&node.Shutdown{
		Number: 2, Kind: source.KindReboot, Origin: "logind", Began: at(10), BeganWallTime: at(1000), Ended: at(40), Cancelled: true, SendsStatuses: true, Errors: []string{"failed"},
	}, []*node.Pod{{
		Key: "uid", Namespace: "default", Name: "web", Priority: 1, Bucket: 2, SignalledBy: 1, StillRanIn: []int{2}, GrantedSeconds: 20,
		Signalled: at(11), Ended: at(12), Outcome: "Graceful", Error: "failed", Policy: node.SetTerminal,
		Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid"}},
	}})
	requireFilled(t, report)
	requireFilled(t, report.Pods[0])
}

// requireFilled fails the test for each field of a struct that has its zero value.
func requireFilled(t *testing.T, filled any) {
	t.Helper()
	v := reflect.ValueOf(filled)
	for i := range v.NumField() {
		require.False(t, v.Field(i).IsZero(), "%s.%s", v.Type().Name(), v.Type().Field(i).Name)
	}
}
