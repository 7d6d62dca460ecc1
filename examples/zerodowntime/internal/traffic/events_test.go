package traffic

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

func TestRecorderSortsByTime(t *testing.T) {
	var r Recorder
	require.Empty(t, r.Events())
	start := time.Unix(0, 0)
	for _, at := range []int{3, 1, 2} {
		r.Add(Event{Outcome: Answered, At: start.Add(time.Duration(at) * time.Second)})
	}
	events := r.Events()
	require.Len(t, events, 3)
	for i, e := range events {
		require.Equal(t, start.Add(time.Duration(i+1)*time.Second), e.At)
	}
}

func TestCount(t *testing.T) {
	counts := Count([]Event{{Outcome: Answered}, {Outcome: Cut}, {Outcome: Refused}, {Outcome: Moved}, {Outcome: Answered}, {Outcome: Cut}})
	require.Equal(t, Counts{Answered: 2, Refused: 1, Cut: 2, Moved: 1}, counts)
	require.Equal(t, 3, counts.Failed(), "a websocket that has moved is no failure")
	for outcome, want := range map[Outcome]int{Answered: 2, Refused: 1, Cut: 2, Moved: 1} {
		require.Equal(t, want, counts.Of(outcome))
	}
}

func TestOutcomeOfRequest(t *testing.T) {
	failed := func(failure string) http.Header { return http.Header{proxy.FailureHeader: {failure}} }
	for name, test := range map[string]struct {
		result vegeta.Result
		want   Outcome
	}{
		"whole answer":                     {vegeta.Result{Code: 200}, Answered},
		"no backend took it":               {vegeta.Result{Code: 502, Error: "502 Bad Gateway", Headers: failed(proxy.Refused)}, Refused},
		"a backend broke it off":           {vegeta.Result{Code: 502, Error: "502 Bad Gateway", Headers: failed(proxy.Cut)}, Cut},
		"the answer ended before its end":  {vegeta.Result{Error: "unexpected EOF"}, Cut},
		"a backend answered with an error": {vegeta.Result{Code: 500, Error: "500 Internal Server Error", Headers: http.Header{}}, Cut},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, outcome(&test.result)) })
	}
}
