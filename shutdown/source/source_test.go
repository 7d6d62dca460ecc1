package source_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

func TestDelayCappedErrorNamesWhatIsKnown(t *testing.T) {
	const text = "the host delays its shutdown by 5s at most, 30s was asked for"
	for want, e := range map[string]source.DelayCappedError{
		text: {},
		text + "; InhibitDelayMaxSec is set by /etc/a.conf": {Setting: "InhibitDelayMaxSec", SetBy: "/etc/a.conf"},
		text + "; raise InhibitDelayMaxSec":                 {Setting: "InhibitDelayMaxSec"},
		text + "; the limit is set by /etc/a.conf":          {SetBy: "/etc/a.conf"},
	} {
		e.Requested, e.Granted = 30*time.Second, 5*time.Second
		require.EqualError(t, &e, want)
	}
}

// The list of kinds has every constant but KindUnknown, and package shutdown has an alias for each.
func TestKinds(t *testing.T) {
	constants := func(path string) map[string]string { // the values by name; "" for an alias
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		found := map[string]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Kind") {
				value, _ := spec.Values[0].(*ast.BasicLit)
				if value != nil {
					found[spec.Names[0].Name], err = strconv.Unquote(value.Value)
					require.NoError(t, err)
				} else {
					found[spec.Names[0].Name] = ""
				}
			}
			return true
		})
		return found
	}
	kinds, aliases := constants("event.go"), constants("../source.go")
	for name := range kinds {
		require.Contains(t, aliases, name)
	}
	delete(kinds, "KindUnknown")
	var values []string
	for _, value := range kinds {
		values = append(values, value)
	}
	var listed []string
	for _, kind := range source.Kinds() {
		listed = append(listed, string(kind))
	}
	require.ElementsMatch(t, values, listed)
}
