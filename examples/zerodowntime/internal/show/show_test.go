package show_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/show"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

// delay is the delay of the proxy in all tests.
const delay = 1500 * time.Millisecond

// result makes up a result of a scenario. Its counts are in one of its bins.
func result(name string, load rollout.Load, counts traffic.Counts) rollout.Result {
	r := rollout.Result{
		Scenario: name, Title: "A title that is somewhat longer than a narrow terminal is wide", Load: load, Requests: counts,
		PreStopSleepSeconds: 5, TerminationGracePeriodSeconds: 30, LongestAnswerSeconds: 8.02, LastRefusalSeconds: 1.48,
		Pods: []rollout.Pod{{Name: "old-1", DeletedSeconds: 1, SignalSeconds: 6, ExitedSeconds: 9.2, TookSeconds: 8.2}},
	}
	for i := range 100 {
		r.Bins = append(r.Bins, rollout.Bin{AtSeconds: float64(i)/2 - 1, Seconds: 0.5})
	}
	r.Bins[10].Counts = counts
	return r
}

// results makes up a result of each scenario.
func results() []rollout.Result {
	short := result(rollout.ShortGrace, rollout.Tasks, traffic.Counts{Answered: 90, Cut: 10})
	short.DeleteGracePeriodSeconds, short.Pods[0].Killed = 5, true
	return []rollout.Result{
		result(rollout.NoSleep, rollout.Web, traffic.Counts{Answered: 900, Refused: 100}),
		result(rollout.Sleep, rollout.Web, traffic.Counts{Answered: 1200}),
		result(rollout.LongRequests, rollout.Tasks, traffic.Counts{Answered: 110}),
		short,
		result(rollout.WebsocketsCut, rollout.Websockets, traffic.Counts{Answered: 500, Cut: 12}),
		result(rollout.WebsocketsDrain, rollout.Websockets, traffic.Counts{Answered: 510, Moved: 12}),
	}
}

func TestAdviceFollowsFromTheResults(t *testing.T) {
	advice := show.Advise(results(), delay)
	require.Len(t, advice, 3)
	web, tasks, websockets := advice[0], advice[1], advice[2]
	require.EqualValues(t, 2, web.PreStopSleepSeconds, "more than the 1.48 s of the last refusal")
	require.EqualValues(t, 2+4+1, web.TerminationGracePeriodSeconds)
	require.Contains(t, web.Why, "100 of 1000 requests failed")
	require.Contains(t, web.Why, "none of 1200 requests failed")
	require.EqualValues(t, 9+1, tasks.TerminationGracePeriodSeconds)
	require.Contains(t, tasks.Why, "With the grace cut to 5 s 1 of 1 pods were killed and 10 of 100 long requests failed")
	require.EqualValues(t, 9+1, websockets.TerminationGracePeriodSeconds)
	require.Contains(t, websockets.Why, "12 of the websockets broke")
	require.Contains(t, websockets.Why, "none broke and 12 moved")
}

func TestAdviceGivesNoValueThatTheResultsDoNotShow(t *testing.T) {
	for name, test := range map[string]struct {
		change func([]rollout.Result) []rollout.Result
		kind   int
		want   string
	}{
		"half measured": {func(r []rollout.Result) []rollout.Result { return r[:3] }, 1, "Not measured: that needs the scenarios long-requests and short-grace."},
		"nothing failed without a sleep": {func(r []rollout.Result) []rollout.Result {
			r[0].Requests.Refused = 0
			return r
		}, 0, "Without a sleep none of 900 requests failed"},
		"the sleep was too short": {func(r []rollout.Result) []rollout.Result {
			r[1].Requests.Refused = 3
			return r
		}, 0, "With sleep: 5 still 3 of 1203 requests failed: the sleep must be longer"},
		"the grace was too short": {func(r []rollout.Result) []rollout.Result {
			r[2].Requests.Cut = 3
			return r
		}, 1, "The grace must be longer than the sleep and the longest task together."},
		"websockets broke all the same": {func(r []rollout.Result) []rollout.Result {
			r[5].Requests.Cut = 3
			return r
		}, 2, "3 broke and 12 moved"},
	} {
		t.Run(name, func(t *testing.T) {
			advice := show.Advise(test.change(results()), delay)[test.kind]
			require.Contains(t, advice.Why, test.want)
			require.Zero(t, advice.TerminationGracePeriodSeconds, "no value is advised without a measurement that shows it")
		})
	}
	require.Empty(t, show.Advise(nil, delay))
	require.Len(t, show.Advise(results()[:2], delay), 1)
	short := results()
	short[3].Requests.Cut = 0
	require.Contains(t, show.Advise(short, delay)[1].Why, "The tasks were short enough even for that")
}

func TestTextFitsItsWidth(t *testing.T) {
	for _, style := range []show.Style{{Width: 1}, {Width: 40}, {Width: 40, Color: true}, {Width: 80, ASCII: true}, {Width: 80, Color: true}, {Width: 119}} {
		var out bytes.Buffer
		require.NoError(t, show.Text(&out, results(), delay, style))
		for line := range strings.Lines(out.String()) {
			line = strings.TrimRight(line, "\n")
			if !strings.HasPrefix(line, "    lifecycle:") && !strings.HasPrefix(line, "    terminationGrace") { // these lines are to be copied
				require.LessOrEqual(t, text.StringWidthWithoutEscSequences(line), max(style.Width, 40), "%+v: %s", style, line)
			}
			require.Equal(t, strings.TrimRight(line, " "), line)
		}
		require.Equal(t, style.Color, strings.Contains(out.String(), "\x1b["))
		if style.ASCII {
			require.Equal(t, utf8.RuneCount(out.Bytes()), out.Len())
		}
		for _, name := range rollout.Names() {
			require.Contains(t, out.String(), name)
		}
	}
}

func TestChartShowsFailures(t *testing.T) {
	draw := func(r rollout.Result) string {
		var out bytes.Buffer
		require.NoError(t, show.Text(&out, []rollout.Result{r}, delay, show.Style{Width: 80}))
		chart, _, _ := strings.Cut(out.String(), "SCENARIO")
		return chart
	}
	require.Contains(t, draw(results()[0]), ". answered   x refused")
	require.NotContains(t, draw(results()[1]), "refused")
	require.Contains(t, draw(results()[3]), "# cut")
	require.Contains(t, draw(results()[5]), "o moved")
}

func TestJSONOfNothing(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show.JSON(&out, nil, delay, true))
	var document map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &document))
	require.Equal(t, []any{}, document["scenarios"], "an empty list, not null")
	require.Equal(t, true, document["interrupted"])
	require.InDelta(t, 1.5, document["delaySeconds"], 1e-9)
}

func TestPictures(t *testing.T) {
	for _, drawn := range [][]rollout.Result{nil, results()[:1], results()} {
		var out bytes.Buffer
		require.NoError(t, show.Picture(&out, drawn, "svg"))
		decoder := xml.NewDecoder(&out)
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				require.NoError(t, err)
			}
		}
	}
	var out bytes.Buffer
	require.NoError(t, show.Picture(&out, results(), "png"))
	_, err := png.Decode(&out)
	require.NoError(t, err)
	require.Error(t, show.Picture(&out, results(), "gif"))
}
