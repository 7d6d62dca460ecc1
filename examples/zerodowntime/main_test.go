package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// execute runs the command with a network of pipes and returns what it writes to standard output.
func execute(ctx context.Context, t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, log bytes.Buffer
	c := newCommand(pipeNetwork(manyServers), &out, &log)
	c.SetArgs(append([]string{}, args...)) // never nil, for which cobra takes the arguments of the test's own process
	err := c.ExecuteContext(ctx)
	return out.String(), err
}

// TestMain runs the tests on one processor: with two, the timers of a bubble crash the race detector (golang/go#78156).
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	m.Run()
}

// The program prints a table with one row for each scenario and writes the picture to the file.
func TestTheProgramPrintsATableAndDrawsAPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "lost.svg")
		out, err := execute(t.Context(), t, "--sleep=3", "--delay=2s", "--picture", file)
		require.NoError(t, err)
		require.Contains(t, out, "| sleep 3 s, proxy as sidecar   |")
		for _, s := range scenarios(3) {
			require.Equal(t, 1, strings.Count(out, "| "+s.String()+" "), out)
		}
		picture, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(picture), "learns 2 s late")
	})
}

// After 5 s, in the middle of the rolling updates, the context ends as after a signal. The program returns the
// signal as its error and prints no table.
func TestASignalEndsTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signal := errors.New("interrupt signal received")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, signal)
		defer cancel()
		out, err := execute(ctx, t)
		require.Equal(t, signal, err)
		require.Empty(t, out)
	})
}

// Each wrong argument gives an error that names it, and nothing is measured.
func TestWrongArgumentsAreRefused(t *testing.T) {
	for argument, want := range map[string]string{
		"--delay=-1s": "--delay must not be negative",
		"--sleep=0":   "--sleep must be at least 1",
		"--sleep=1.5": `invalid argument "1.5"`,
		"now":         `unknown command "now"`,
	} {
		out, err := execute(t.Context(), t, argument)
		require.ErrorContains(t, err, want)
		require.Empty(t, out)
	}
}

// The labels of the picture are texts and not outlines, so that a browser can search them and screen readers can read
// them. The axis has the label 60, above the highest bar of 55.
func TestThePictureHasItsLabelsAsText(t *testing.T) {
	picture, err := drawPicture([]result{
		{scenario: scenario{}, lost: 55},
		{scenario: scenario{sleep: 90, proxy: proxyAsSidecar}},
	}, 1500*time.Millisecond)
	require.NoError(t, err)
	for _, text := range []string{
		"requests lost", "60", "the load balancer learns 1.5 s late that a pod ends", "no preStop", "sleep 90 s,", "proxy as", "sidecar", "55",
	} {
		require.Equal(t, 1, strings.Count(string(picture), ">"+text+"</text>"), text)
	}
}

// No request is lost, so all bars have the height 0. The axis reaches from 0 to 10.
func TestThePictureOfNoLossHasAnAxis(t *testing.T) {
	picture, err := drawPicture([]result{{scenario: scenario{sleep: 5}}}, time.Second)
	require.NoError(t, err)
	require.Contains(t, string(picture), ">10</text>")
}
