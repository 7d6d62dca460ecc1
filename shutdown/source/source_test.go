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

// The text of the error has both durations. If the host's setting and the file that sets it are known, the text names them,
// so that the reader knows what to change.
func TestDelayCappedErrorNamesWhatIsKnown(t *testing.T) {
	const text = "the host delays its shutdown by 5s at most, 30s was requested"
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

// Kinds returns every constant Kind... that event.go declares, except KindUnknown.
func TestKindsListsEveryConstant(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var values []source.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Kind") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			values = append(values, source.Kind(value))
		}
		return true
	})
	require.ElementsMatch(t, values, append(source.Kinds(), source.KindUnknown))
}
