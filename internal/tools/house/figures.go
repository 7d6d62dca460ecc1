package main

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figure is a part of a sentence with figures that follow from the repository.
type figure struct {
	// says is a regular expression, in which a space stands for any white space. Each group is a
	// figure, in digits or as a word. A group named below is an upper bound: the figure of the
	// repository must be less.
	says     string
	expected expectation
}

// expectation returns the figures that the repository has, one for each group.
type expectation func(repository) ([]string, error)

// figures returns the figures of the pages that this program can check. It cannot check
// measurements, nor figures about the kubelet.
func figures() []figure {
	const (
		agent    = "examples/processagent/main.go"
		provider = "lifecycle/virtualkubelet/go.mod"
		library  = `k8s\.io/api (v0\.\d+)`
		outbox   = "shutdown/internal/outbox"
		e2e      = "examples/nodeagent/e2e"
	)
	return []figure{
		{`an agent in (\d+) lines`, lines(agent)},
		{`in (?:under|less than) (?P<below>\d+) lines`, lines(agent)},
		{`runtime of (\w+) methods`, methods("lifecycle/virtualkubelet", "Runtime")},

		{`Go (1\.\d+)(?: or later|, and the Kubernetes libraries)`, find("go.mod", `\ngo (1\.\d+)`)},
		{`v0\.\d+\.\d+ \| (go1\.25\.\d+) \|`, find("Makefile", `OLDEST_GO := (go\S+)`)},
		{`the Kubernetes libraries from (v0\.\d+) on`, find("go.mod", library)},
		{`packages, with Kubernetes (v0\.\d+) \|`, find("go.mod", library)},
		{`(?:go back to|down to|with Kubernetes) v0\.(\d+)(?: with|\.| and each)`, constant("internal/tools/compat", "oldest", 1)},
		{`virtual-kubelet (v1\.\d+)`, find(provider, `virtual-kubelet/virtual-kubelet (v1\.\d+)`)},
		{`virtual-kubelet v1\.\d+, which needs (v0\.\d+)`, find(provider, library)},

		{`has not answered for ([\d.]+) s`, constant(outbox, "answerPatience", time.Second)},
		{`did not answer for ([\d.]+) s`, constant(outbox, "answerPatience", time.Second)},
		{`goes out as it ends, (\w+) at a time`, constant(outbox, "callsAtOnce", 1)},
		{`killed (\d+) s past its timeout`, constant("lifecycle", "DefaultStopSlack", time.Second)},
		{`given up after (\d+) minutes`, constant("lifecycle", "DefaultGiveUp", time.Minute)},
		{`(\w+) minutes after its grace period`, constant("lifecycle", "DefaultGiveUp", time.Minute)},
		{`sleep cut within (\d+) ms of its end`, constant("lifecycle", "sleepTolerance", time.Millisecond)},

		{`more than (\w+) times as long as 10,000`, find("internal/tools/bench", `mostGrow = (\d+)`)},
		{`for (\w+) minutes, or as long as \x60KUBEGRACE_SOAK`, find("Makefile", `KUBEGRACE_SOAK \?= (\d+)m`)},
		{`Debian 12 with systemd (\d+)`, find(e2e+"/machine", `Debian 12, systemd (\d+)`)},
		{`Debian 13 with systemd (\d+)`, find(e2e+"/machine", `Debian 13, systemd (\d+)`)},
		{`cancelled, with (\d+) pods`, constant(e2e, "fullNode", 1)},
		{`builds containerd ([\d.]+) and ([\d.]+)`, folders("internal/containerd")},
		{`runs (\w+) rolling updates`, count("examples/zerodowntime/internal/rollout", `\bName: \w+, Load:`)},
		{`stay below (\d+) lines`, find(".golangci.yml", `name: file-length-limit\s+arguments: \[\{max: (\d+)`)},
	}
}

// checkFigures compares the figures of all pages with the repository.
func checkFigures(repo repository) ([]string, error) {
	var problems []string
	for _, name := range repo.match("", "*.md") {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		for _, f := range figures() {
			found, err := f.wrong(repo, string(content))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, problem := range found {
				problems = append(problems, name+": "+problem)
			}
		}
	}
	return problems, nil
}

// pattern returns the regular expression that finds the figure in a page.
func (f figure) pattern() *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(f.says, " ", `\s+`))
}

// wrong returns the problems of a page.
func (f figure) wrong(repo repository, page string) ([]string, error) {
	pattern := f.pattern()
	matches := pattern.FindAllStringSubmatch(page, -1)
	if len(matches) == 0 {
		return nil, nil
	}
	want, err := f.expected(repo)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, match := range matches {
		got := make([]string, len(match)-1)
		for i, text := range match[1:] {
			got[i] = inDigits(text)
		}
		right := slices.Equal(got, want)
		if pattern.SubexpIndex("below") > 0 {
			most, mostErr := strconv.Atoi(got[0])
			is, isErr := strconv.Atoi(want[0])
			right = mostErr == nil && isErr == nil && is < most
		}
		if !right {
			problems = append(problems, fmt.Sprintf("%q: in the repository it is %s", strings.Join(strings.Fields(match[0]), " "), strings.Join(want, " and ")))
		}
	}
	return problems, nil
}

// inDigits returns a number in digits if the text is a number as a word or has commas, and any other
// text unchanged.
func inDigits(text string) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	if n := slices.Index(words, text); n >= 0 {
		return strconv.Itoa(n)
	}
	return strings.ReplaceAll(text, ",", "")
}

// source returns the content of a file, or of all Go files that are directly in a folder. Figures
// name a folder where a file in it may be renamed.
func source(repo repository, name string) (string, error) {
	if path.Ext(name) != "" || name == "Makefile" {
		content, err := repo.read(name)
		return string(content), err
	}
	var all strings.Builder
	for _, file := range repo.match(name, "*.go") {
		if path.Dir(file) != name {
			continue
		}
		content, err := repo.read(file)
		if err != nil {
			return "", err
		}
		all.Write(content)
	}
	return all.String(), nil
}

// find expects the groups of the first match in a file or a folder.
func find(name, pattern string) expectation {
	return func(repo repository) ([]string, error) {
		content, err := source(repo, name)
		if err != nil {
			return nil, err
		}
		match := regexp.MustCompile(pattern).FindStringSubmatch(content)
		if match == nil {
			return nil, fmt.Errorf("%s has nothing like %s, from which a figure of the pages follows", name, pattern)
		}
		return match[1:], nil
	}
}

// count expects the number of matches in a file or a folder.
func count(name, pattern string) expectation {
	return func(repo repository) ([]string, error) {
		content, err := source(repo, name)
		return []string{strconv.Itoa(len(regexp.MustCompile(pattern).FindAllString(content, -1)))}, err
	}
}

// lines expects the number of lines of a file.
func lines(name string) expectation { return count(name, `\n`) }

// folders expects the names of the folders with a go.mod below a folder.
func folders(below string) expectation {
	return func(repo repository) ([]string, error) {
		names := repo.match(below, "go.mod")
		for i, name := range names {
			names[i] = path.Base(path.Dir(name))
		}
		return names, nil
	}
}

// methods expects the number of methods of an interface in a folder. An embedded interface counts as
// one method.
func methods(folder, of string) expectation {
	declared := find(folder, `(?s)\ntype `+of+` interface \{\n(.*?)\n\}`)
	return func(repo repository) ([]string, error) {
		body, err := declared(repo)
		if err != nil {
			return nil, err
		}
		return []string{strconv.Itoa(len(regexp.MustCompile(`(?m)^\t\w`).FindAllString(body[0], -1)))}, nil
	}
}

// constant expects the value of a constant, which is a number or a duration, in the given unit.
func constant(name, constant string, unit time.Duration) expectation {
	declared := find(name, `\b`+constant+` += (\d*)(?: \* )?(?:time\.(\w+))?`)
	return func(repo repository) ([]string, error) {
		parts, err := declared(repo)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(cmp.Or(parts[0], "1"), 10, 64) // time.Second stands for one
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, constant, err)
		}
		of := map[string]time.Duration{"": 1, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute}[parts[1]]
		return []string{strconv.FormatFloat(float64(n)*of.Seconds()/unit.Seconds(), 'g', 6, 64)}, nil
	}
}
