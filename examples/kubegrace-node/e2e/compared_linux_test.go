//go:build e2e

package e2e_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// status returns what kubegrace-node status prints in a machine, with flags. The last line has its exit status, and each
// PID is 812. as is a command that runs it as another user; nil: root.
func status(t *testing.T, m *machine.Machine, as []string, flags string) string {
	t.Helper()
	text, err := m.TryRun(t.Context(), append(as, "sh", "-c", "COLUMNS=2000 /usr/local/bin/kubegrace-node status "+flags+" 2>&1; echo exit status $?")...)
	require.NoError(t, err)
	return regexp.MustCompile(`PID \d+`).ReplaceAllString(text, "PID 812") + "\n"
}

// row returns what status says by a row of COMPARED.md: a sentence, in which … stands for any text, and the exit status.
func row(t *testing.T, name string) *regexp.Regexp {
	t.Helper()
	cells := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*\| ` + "`([^`]+)`" + `, exit status (\d) \|[^|]*\|$`).FindStringSubmatch(string(readFile(t, "../COMPARED.md")))
	require.Len(t, cells, 3, name)
	return regexp.MustCompile(`(?s)` + strings.ReplaceAll(regexp.QuoteMeta(cells[1]), "…", `[^\n]*`) + `.*exit status ` + cells[2])
}

// awaitRow waits until status says what a row of COMPARED.md says.
func awaitRow(t *testing.T, m *machine.Machine, name string) {
	t.Helper()
	want, text := row(t, name), ""
	says := assert.Eventually(t, func() bool { text = status(t, m, nil, ""); return want.MatchString(text) }, 20*time.Second, 200*time.Millisecond)
	require.Truef(t, says, "%s: %s", name, text)
}
