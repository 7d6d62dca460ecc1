package timelinetest

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// patience bounds a whole test with a browser: on a busy machine it starts slowly.
const patience = 3 * time.Minute

// inspect is a script that lists what is wrong with a page.
//
//go:embed inspect.js
var inspect string

// Browser is a Chromium with one page open.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex // guards requests
	requests []string
}

// Start starts a Chromium that ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := need.Program(t, "chromium", "chromium")
	profile := profileFolder(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience),
		chromedp.NoSandbox, // it is of no use to root
	}, chromedp.DefaultExecAllocatorOptions[:]...)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf), chromedp.WithLogf(t.Logf))
	t.Cleanup(cancel)
	b := &Browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, sent.Request.URL)
		}
	})
	require.NoError(t, chromedp.Run(ctx, network.Enable()))
	return b
}

// profileFolder makes a folder that is removed when the test is over. It is not one of
// t.TempDir, which is removed in one attempt: the processes that Chromium has started end a
// moment after Chromium, and until then they write into its profile.
func profileFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(folder) == nil }, patience, 10*time.Millisecond,
			"%s cannot be removed", folder)
	})
	return folder
}

// Open opens a page from a file.
func (b *Browser) Open(html []byte) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	require.NoError(b.t, os.WriteFile(file, html, 0o600))
	require.NoError(b.t, chromedp.Run(b.ctx, chromedp.Navigate("file://"+file)))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, url := range b.requests {
		require.True(b.t, url == "file://"+file || strings.HasPrefix(url, "data:"), "the page asks for %s", url)
	}
	require.NotEmpty(b.t, b.requests, "the page itself")
}

// RequireReadable has the page shown in a window of so many pixels, in the light or the
// dark color scheme, and requires that nothing is cut off, that labels do not cover each
// other, and that all text is large enough and stands out from what is behind it.
func (b *Browser) RequireReadable(width int64, scheme string) {
	b.t.Helper()
	require.Empty(b.t, b.Inspect(width, scheme), "%d pixels, %s", width, scheme)
}

// Inspect gives what RequireReadable would complain about.
func (b *Browser) Inspect(width int64, scheme string) (problems []string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx,
		chromedp.EmulateViewport(width, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Evaluate(inspect, &problems),
	))
	return problems
}

// Value evaluates a JavaScript expression in the page.
func (b *Browser) Value(expression string, to any) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, chromedp.Evaluate(expression, to)))
}
