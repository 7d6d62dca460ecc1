package shutdown

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// reported returns progress with the reports of so many pods, which differ in all fields.
func reported(pods int) progress {
	p := storedProgress()
	p.BootID = `"report":{`
	p.Report.Pods = nil
	for i := range pods {
		p.Report.Pods = append(p.Report.Pods, PodReport{
			Namespace: "test", Name: fmt.Sprintf("pod-%d", i), UID: `"report":{`, Priority: int32(i), Bucket: -1, GrantedSeconds: 20,
			Started: at(0).Add(time.Duration(i)), Ended: at(i % 60).In(time.FixedZone("east", 3600)), Outcome: "<Graceful>", Error: "busy", Unflushed: i%2 == 0,
		})
	}
	p.Report.Pods = append(p.Report.Pods, PodReport{Namespace: "test", Name: "never"})
	p.Report.Errors = []string{`"report":{`}
	p.Unacknowledged = []finalStatus{{Pod: &v1.Pod{Status: v1.PodStatus{Phase: v1.PodFailed}}}}
	return p
}

// The text that is written pod by pod is that of json.Marshal.
func TestEncodeIsTheJSONOfProgress(t *testing.T) {
	empty := storedProgress()
	empty.Report.Pods = nil
	for _, p := range []progress{{}, empty, storedProgress(), reported(3)} {
		want, err := json.Marshal(p)
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, p.encode(&got))
		require.JSONEq(t, string(want), got.String())
	}
}

// disk is a writer that fails once it is full.
type disk struct {
	left    int
	largest int // the size of the largest write so far
}

var errFull = errors.New("no space left")

func (d *disk) Write(text []byte) (int, error) {
	d.largest = max(d.largest, len(text))
	if d.left -= len(text); d.left < 0 {
		return 0, errFull
	}
	return len(text), nil
}

// The text of many pods is never in memory as a whole.
func TestEncodeWritesInPieces(t *testing.T) {
	p := reported(1000)
	d := &disk{left: 1 << 20}
	require.NoError(t, p.encode(d))
	require.Less(t, d.left, 1<<20-200_000, "it is a long text")
	require.LessOrEqual(t, d.largest, 8<<10)
}

func TestEncodeGivesTheErrorOfTheFile(t *testing.T) {
	p := reported(1000)
	for _, left := range []int{0, 5000, 50_000} {
		require.ErrorIs(t, p.encode(&disk{left: left}), errFull)
	}
	p.Report.Pods[500].Ended = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	require.ErrorContains(t, p.encode(io.Discard), "year outside of range")
	p.Report.Started = p.Report.Pods[500].Ended
	require.ErrorContains(t, p.encode(io.Discard), "year outside of range")
}
