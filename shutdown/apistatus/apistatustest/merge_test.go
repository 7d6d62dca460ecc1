package apistatustest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"
)

// TestMergeJSON runs the cases of RFC 7386, appendix A, whose patch is an object, as
// a patch of a resource always is.
func TestMergeJSON(t *testing.T) {
	for _, test := range []struct{ original, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":9007199254740993}`, `{"b":1}`, `{"a":9007199254740993,"b":1}`},
	} {
		var original, patch map[string]any
		require.NoError(t, json.Unmarshal([]byte(test.original), &original))
		require.NoError(t, json.Unmarshal([]byte(test.patch), &patch))
		got, err := json.Marshal(mergeJSON(original, patch))
		require.NoError(t, err)
		require.JSONEq(t, test.want, string(got), "%s with %s", test.original, test.patch)
	}
}
