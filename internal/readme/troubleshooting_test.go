package readme_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each text in quotes in the tables of troubleshooting and of log lines comes from a string in the
// library or in the example agent: it is a part of the string, or begins or ends with it, with
// something in the place of each verb such as %v.
func TestOperatorsPageQuotesWhatIsPrinted(t *testing.T) {
	verb := regexp.MustCompile(`%[a-z]`)
	var printed []string
	for _, s := range slices.Concat(library(t), packagesBelow(t, "internal/call"), packagesBelow(t, "examples/nodeagent")) {
		inspect(s, func(basic *ast.BasicLit) {
			if text, ok := literal(basic); ok {
				printed = append(printed, text)
			}
		})
	}
	text := page(t, "examples/nodeagent/README.md")
	for _, heading := range []string{"Troubleshooting", "Log lines"} {
		_, section, found := strings.Cut(text, "\n## "+heading+"\n")
		require.True(t, found)
		section, _, _ = strings.Cut(section, "\n## ")
		quotes := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(strings.Join(regexp.MustCompile(`(?m)^\|.*`).FindAllString(section, -1), "\n"), -1)
		require.NotEmpty(t, quotes, heading)
		for _, quote := range quotes {
			require.True(t, slices.ContainsFunc(printed, func(text string) bool {
				if len(verb.ReplaceAllString(text, "")) < 20 { // such as "%s: %s", which is found in most texts
					return text == quote[1]
				}
				pattern := verb.ReplaceAllString(regexp.QuoteMeta(text), ".+")
				return strings.Contains(text, quote[1]) || regexp.MustCompile("^"+pattern+"|"+pattern+"$").MatchString(quote[1])
			}), "nothing prints %q", quote[1])
		}
	}
}
