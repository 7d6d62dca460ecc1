package readme_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each quoted text in the tables of troubleshooting and of log lines of examples/kubegrace-node/README.md exists in
// the code of the library or the example agent: it is a part of a string literal, or begins or ends with one,
// with any text for verbs such as %v.
func TestQuotedLogLinesExistInTheCode(t *testing.T) {
	verb := regexp.MustCompile(`%[a-z]`)
	var printed []string
	for _, s := range slices.Concat(library(t), packagesBelow(t, "internal/call"), packagesBelow(t, "examples/kubegrace-node")) {
		inspect(s, func(basic *ast.BasicLit) {
			if text, ok := literal(basic); ok {
				printed = append(printed, text)
			}
		})
	}
	text := page(t, "examples/kubegrace-node/README.md")
	for _, heading := range []string{"Troubleshooting", "Log lines"} {
		_, section, found := strings.Cut(text, "\n## "+heading+"\n")
		require.True(t, found)
		section, _, _ = strings.Cut(section, "\n## ")
		rows := regexp.MustCompile(`(?m)^\|.*`).FindAllString(section, -1)
		quotes := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(strings.Join(rows, "\n"), -1)
		require.NotEmpty(t, quotes, heading)
		for _, quote := range quotes {
			require.True(t, slices.ContainsFunc(printed, func(text string) bool {
				if len(verb.ReplaceAllString(text, "")) < 20 { // such as "%s: %s", which matches most texts
					return text == quote[1]
				}
				pattern := verb.ReplaceAllString(regexp.QuoteMeta(text), ".+")
				return strings.Contains(text, quote[1]) || regexp.MustCompile("^"+pattern+"|"+pattern+"$").MatchString(quote[1])
			}), "no string in the code matches %q", quote[1])
		}
	}
}
