//go:build e2e

package e2e_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// status returns the output of kubegrace-node status with flags in a machine, and its exit status as the last
// line. It replaces each PID by 812, so that the text is the same in every run. as is a command line that runs
// it as another user; nil: it runs as root.
func status(t *testing.T, m *machine.Machine, as []string, flags string) string {
	t.Helper()
	text, err := m.TryRun(t.Context(), append(slices.Clone(as), "sh", "-c", "COLUMNS=2000 /usr/local/bin/kubegrace-node status "+flags+" 2>&1; echo exit status $?")...)
	require.NoError(t, err)
	return regexp.MustCompile(`PID \d+`).ReplaceAllString(text, "PID 812") + "\n"
}

// asNobody is the start of a command line that runs a program as the user nobody.
var asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}

// row returns a pattern for the output of status, made of one row of the table in COMPARED.md, which it finds
// by its first column. The row quotes a sentence, in which … stands for any text, and an exit status.
func row(t *testing.T, name string) *regexp.Regexp {
	t.Helper()
	cells := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*\| ` + "`([^`]+)`" + `, exit status (\d) \|[^|]*\|$`).FindStringSubmatch(string(readFile(t, "../COMPARED.md")))
	require.Len(t, cells, 3, name)
	return regexp.MustCompile(`(?s)` + strings.ReplaceAll(regexp.QuoteMeta(cells[1]), "…", `[^\n]*`) + `.*exit status ` + cells[2])
}

// awaitRow waits until the output of kubegrace-node status is as COMPARED.md says in the row with this name.
func awaitRow(t *testing.T, m *machine.Machine, name string) {
	t.Helper()
	want, text := row(t, name), ""
	says := assert.Eventually(t, func() bool { text = status(t, m, nil, ""); return want.MatchString(text) }, 20*time.Second, 200*time.Millisecond)
	require.Truef(t, says, "%s: %s", name, text)
}
