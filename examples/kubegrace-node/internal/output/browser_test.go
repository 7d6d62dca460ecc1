package output_test

import (
	_ "embed"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// inspectScript is JavaScript that returns a list of problems: what in a page cannot be read.
//
//go:embed testdata/inspect.js
var inspectScript string

// colorScheme is the color scheme that a user prefers.
type colorScheme string

const (
	light colorScheme = "" // Chromium's default
	dark  colorScheme = "dark"
)

// evaluate shows a page in Chromium, in a frame that is 1280 pixels wide and in one of 400 pixels, as narrow as a
// phone. It evaluates a JavaScript expression in each frame, and returns the two values as JSON. The page's policy must
// forbid to load anything; evaluate makes an exception for the script.
func evaluate(t *testing.T, page, script string, colors colorScheme) (wide, narrow string) {
	t.Helper()
	need.Long(t, "pages in a browser")
	program := need.Program(t, "chromium", "chromium")
	folder, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	t.Cleanup(func() { // Chromium's child processes end a moment after it, and write into the profile until then
		require.Eventually(t, func() bool { return os.RemoveAll(folder) == nil }, time.Minute, 10*time.Millisecond)
	})
	const policy = "default-src 'none'"
	require.Contains(t, page, policy)
	page = strings.Replace(page, policy, policy+"; script-src 'unsafe-inline'", 1)
	page = html.EscapeString(page + "<script>parent.document.querySelector('pre').append(JSON.stringify(" + script + ") + '\\n')</script>")
	const frame = `<iframe style="width:%dpx;height:900px;border:0" srcdoc="%s"></iframe>`
	frames := `<!DOCTYPE html><meta name="color-scheme" content="light dark"><pre></pre>` + fmt.Sprintf(frame+frame, 1280, page, 400, page)
	file := filepath.Join(folder, "page.html")
	require.NoError(t, os.WriteFile(file, []byte(frames), 0o600))
	// The sandbox does not work for root, as whom tests may run.
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + folder, "--dump-dom", "file://" + file}
	if colors == dark {
		args = append([]string{"--blink-settings=preferredColorScheme=0"}, args...)
	}
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	require.NoError(t, err)
	_, values, _ := strings.Cut(string(out), "<pre>")
	values, _, _ = strings.Cut(values, "</pre>")
	lines := strings.Split(strings.TrimSpace(html.UnescapeString(values)), "\n")
	require.Len(t, lines, 2)
	return lines[0], lines[1]
}
