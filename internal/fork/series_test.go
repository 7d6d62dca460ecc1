package fork

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// preamble stands for the number of a change in commands: the section before the first change, whose commands declare the
// functions of the others.
const preamble = "0"

// commands returns the commands of a change in SERIES.md.
func commands(t *testing.T, change string) string {
	t.Helper()
	page, err := os.ReadFile("SERIES.md")
	require.NoError(t, err)
	headedPage := "\n## " + preamble + ". \n" + string(page) // the preamble has no heading in the page
	_, rest, found := strings.Cut(headedPage, "\n## "+change+". ")
	require.True(t, found)
	section, _, _ := strings.Cut(rest, "\n## ")
	var all strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(section, -1) {
		all.WriteString(block[1])
	}
	require.NotEmpty(t, all.String())
	return all.String()
}

// The test makes a fork from the files that only declare what a kubelet has, without the lines that call kubegrace. The
// commands of the first five changes, run in that fork, must add these lines again and copy kubegrace's files, so that the
// fork has the files that are compiled and tested here.
func TestTheCommandsProduceTheTestedFiles(t *testing.T) {
	for _, tool := range []string{"bash", "perl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("left to make check: the commands of the page need %s", tool)
		}
	}
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			forkDir, testedDir := filepath.Join(t.TempDir(), "fork"), mustAbs(t, version)
			edited := writeFork(t, forkDir, testedDir)
			// The commands take the files from the folder in their variable FORK.
			var script strings.Builder
			script.WriteString(regexp.MustCompile(`(?m)^FORK=\S+`).ReplaceAllLiteralString(commands(t, preamble), "FORK="+testedDir))
			for _, change := range []string{"1", "2", "3", "4", "5"} {
				script.WriteString(commands(t, change))
			}
			command := exec.CommandContext(t.Context(), "bash", "-e", "-c", script.String())
			command.Dir = forkDir
			output, err := command.CombinedOutput()
			require.NoError(t, err, string(output))
			for name, want := range edited {
				got, err := os.ReadFile(filepath.Join(forkDir, name))
				require.NoError(t, err)
				require.Equal(t, oneSpace(want), oneSpace(string(got)), name)
			}
			require.NoError(t, filepath.WalkDir(testedDir, func(path string, _ os.DirEntry, err error) error {
				name, errName := filepath.Rel(testedDir, path)
				require.NoError(t, errName)
				if err == nil && isCopied(name) {
					require.FileExists(t, filepath.Join(forkDir, name))
				}
				return err
			}))
		})
	}
}

// writeFork writes into forkDir what a kubelet has before the changes of SERIES.md: the files that the commands do not
// copy, without the lines that the commands add. edited has, by file name, the text that each of these files must have
// after the commands.
func writeFork(t *testing.T, forkDir, testedDir string) (edited map[string]string) {
	t.Helper()
	// The lines that the commands add:
	added := regexp.MustCompile(`(?m)^\tif kubegraceEnabled\(\) \{\n.*\n\t\}\n|^\tterminator +kubegraceTerminator\n|^\tdefer m\.kubegraceForget.*\n`)
	edited = map[string]string{}
	require.NoError(t, filepath.WalkDir(testedDir, func(path string, entry os.DirEntry, err error) error {
		name, errName := filepath.Rel(testedDir, path)
		require.NoError(t, errName)
		if err != nil || entry.IsDir() || isCopied(name) || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		edited[name] = string(data)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(forkDir, name)), 0o750))
		return os.WriteFile(filepath.Join(forkDir, name), added.ReplaceAll(data, nil), 0o600)
	}))
	// The functions of a fork that the tested files lack:
	for _, function := range onlyInForks(t) {
		path := filepath.Join(forkDir, function.file)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(string(data)+function.before), 0o600))
		edited[function.file] += function.after
	}
	return edited
}

// The table in SERIES.md says for each change how many files it copies to the fork, and how many lines these have. The commands of
// a change copy files with take, a shell function: "take FILE...". The table does not count an indented take: it is inside an if,
// and copies only to a fork with an API server.
func TestTheTableHasTheLinesOfTheCopiedFiles(t *testing.T) {
	page, err := os.ReadFile("SERIES.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d)\. .* \| (\d+) files?, (\d+) lines`).FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, 5)
	unindentedTake := regexp.MustCompile(`(?m)^take (.*)$`)
	for _, row := range rows {
		files := strings.Fields(unindentedTake.FindStringSubmatch(commands(t, row[1]))[1])
		lines := 0
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join("v1.32", file))
			require.NoError(t, err)
			lines += strings.Count(string(data), "\n")
		}
		require.Equal(t, row[2:], []string{strconv.Itoa(len(files)), strconv.Itoa(lines)}, "change %s", row[1])
	}
}

// unimport is a shell function in the commands of SERIES.md. It must remove the imports that a file does not use, here
// errors, net/url and the second klog, and no other.
func TestUnimportRemovesUnusedImports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.go")
	require.NoError(t, os.WriteFile(file, []byte(`package p

import (
	"errors"
	"net/url"

	_ "embed"

	"github.com/opencontainers/selinux/go-selinux"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	other "k8s.io/klog/v2"
)

var _, _ = klog.Infof, selinux.GetEnabled // not errors of a url
var _ v1.Pod
`), 0o600))
	command := exec.CommandContext(t.Context(), "bash", "-e", "-c", commands(t, preamble)+"\nunimport "+file)
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `package p

import (
	_ "embed"

	"github.com/opencontainers/selinux/go-selinux"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

var _, _ = klog.Infof, selinux.GetEnabled // not errors of a url
var _ v1.Pod
`, string(data))
}

// The commands of SERIES.md must work without a network, as in a fork that vendors its dependencies. So none of them is a
// command such as go get or curl.
func TestCommandsNeedNoNetwork(t *testing.T) {
	for _, change := range []string{preamble, "1", "2", "3", "4", "5", "6"} {
		for _, word := range []string{"go run", "go get", "go install", "curl", "wget"} {
			require.NotContains(t, commands(t, change), word, change)
		}
	}
}

// onlyInFork is a function of a fork that the series removes or edits, and that is not declared here. before and after are
// its text before and after the commands; after "": the series removes it.
type onlyInFork struct{ file, before, after string }

// onlyInForks returns these functions: two that the series edits, and each that a command "drop" of the first change names.
func onlyInForks(t *testing.T) []onlyInFork {
	all := []onlyInFork{
		{
			"pkg/kubelet/pod_workers.go", "\nfunc update() {\n\t\tstatus.gracePeriod = gracePeriod\n}\n",
			" func update() { status.gracePeriod = gracePeriod if gracePeriodShortened { kubegraceShorten(p.podSyncer, pod, gracePeriod) } }",
		},
		{
			"pkg/kubelet/eviction/eviction_manager.go", "\nfunc evict() {\n\t\tmessage, annotations := evictionMessage()\n}\n",
			" func evict() { if !isHardEvictionThreshold(thresholdToReclaim) { gracePeriodOverride = m.softGracePeriod(pod, gracePeriodOverride) } message, annotations := evictionMessage() }",
		},
	}
	for _, drop := range regexp.MustCompile(`(?m)^ *drop (\S+) (.+)$`).FindAllStringSubmatch(commands(t, "1"), -1) {
		for name := range strings.FieldsSeq(drop[2]) {
			all = append(all, onlyInFork{file: drop[1], before: "\n// " + name + " is removed.\nfunc " + name + "() {\n\tif true {\n\t}\n}\n"})
		}
	}
	return all
}

// oneSpace replaces each sequence of spaces by one, because the alignment of fields differs.
func oneSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

// mustAbs returns the absolute path.
func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}
