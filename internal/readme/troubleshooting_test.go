package readme_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayPrint reports whether code with a string literal may print a quoted text: the quote is a part of the literal, or the quote
// begins or ends with the whole literal, whose verbs, such as %v, stand for any text. A literal with fewer than 20 characters
// besides its verbs, such as "%s: %s", would match most quotes, so it must equal the quote.
func mayPrint(literal, quoted string) bool {
	verb := regexp.MustCompile(`%[a-z]`)
	if len(verb.ReplaceAllString(literal, "")) < 20 {
		return literal == quoted
	}
	pattern := verb.ReplaceAllString(regexp.QuoteMeta(literal), ".+")
	return strings.Contains(literal, quoted) || regexp.MustCompile("^"+pattern+"|"+pattern+"$").MatchString(quoted)
}

// Each quoted text in the tables of troubleshooting and of log lines of examples/kubegrace-node/README.md is printed by
// the code of the library or the example agent.
func TestQuotedLogLinesExistInTheCode(t *testing.T) {
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
			isPrinted := slices.ContainsFunc(printed, func(literal string) bool { return mayPrint(literal, quote[1]) })
			require.True(t, isPrinted, "no string in the code matches %q", quote[1])
		}
	}
}
