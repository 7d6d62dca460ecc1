package output_test

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

// browserTimeout is how long a whole test with a browser may take. A browser starts slowly on a busy machine.
const browserTimeout = 3 * time.Minute

// inspectScript is JavaScript that returns a list of problems: what in a page cannot be read.
//
//go:embed testdata/inspect.js
var inspectScript string

// browser is a Chromium with one open page. Make one with [startBrowser].
type browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex // guards requests
	requests []string   // the URLs that the page has loaded since open
}

// startBrowser starts a Chromium that ends with the test. If none is installed, package need skips the test or
// fails it.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	need.Long(t, "pages in a browser")
	program := need.Program(t, "chromium", "chromium")
	profile := profileFolder(t)
	ctx, cancel := context.WithTimeout(t.Context(), browserTimeout)
	t.Cleanup(cancel)
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(browserTimeout),
		chromedp.NoSandbox, // the sandbox does not work for root, as whom tests may run
	}, chromedp.DefaultExecAllocatorOptions[:]...)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf), chromedp.WithLogf(t.Logf))
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
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

// profileFolder makes a folder for Chromium's profile and removes it when the test is over. Chromium's child
// processes end a moment after Chromium itself and write into the profile until then. The removal is therefore
// tried until it succeeds; t.TempDir would try only once.
func profileFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(folder) == nil }, browserTimeout, 10*time.Millisecond,
			"%s cannot be removed", folder)
	})
	return folder
}

// open opens a page, and fails the test if the page loads anything from elsewhere.
func (b *browser) open(html string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	require.NoError(b.t, os.WriteFile(file, []byte(html), 0o600))
	b.mu.Lock()
	b.requests = nil
	b.mu.Unlock()
	require.NoError(b.t, chromedp.Run(b.ctx, chromedp.Navigate("file://"+file)))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, url := range b.requests {
		require.True(b.t, url == "file://"+file || strings.HasPrefix(url, "data:"), "the page loads %s", url)
	}
	require.NotEmpty(b.t, b.requests, "the request for the page itself was seen")
}

// requireReadable requires that inspect finds no problem, neither in a wide window nor in one as narrow as a
// phone, in both color schemes.
func (b *browser) requireReadable() {
	b.t.Helper()
	for _, width := range []int64{1280, 400} {
		for _, scheme := range []string{"light", "dark"} {
			require.Empty(b.t, b.inspect(width, scheme), "%d pixels, %s", width, scheme)
		}
	}
}

// inspect shows the page in a window of width pixels, in the color scheme "light" or "dark",
// and returns a text for each problem: something is cut off, labels cover each other, a text
// is too small, or its contrast to the background is too low.
func (b *browser) inspect(width int64, scheme string) (problems []string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx,
		chromedp.EmulateViewport(width, 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Evaluate(inspectScript, &problems),
	))
	return problems
}

// value evaluates a JavaScript expression in the page and stores its value in to, a pointer.
func (b *browser) value(expression string, to any) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, chromedp.Evaluate(expression, to)))
}
