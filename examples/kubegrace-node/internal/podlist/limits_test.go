package podlist_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
)

// repeated returns a reader of size bytes that repeats a text.
func repeated(text string, size int64) io.Reader {
	return io.LimitReader(&repeatingReader{text: strings.Repeat(text, 1+(64<<10)/len(text))}, size)
}

type repeatingReader struct {
	text   string
	offset int
}

func (r *repeatingReader) Read(to []byte) (n int, err error) {
	n = copy(to, r.text[r.offset:])
	r.offset = (r.offset + n) % len(r.text)
	return n, nil
}

// allocated returns how many bytes a function allocates, including those that the garbage
// collector frees meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Reading stops at the limit, however large the object is.
func TestObjectsThatAreTooLargeAreRefused(t *testing.T) {
	const limit = "is too large: it has more than 3145728 bytes (3 MiB), which are the limit of an object"
	const yamlLimit = "is too large: it has more than 16777216 bytes (16 MiB), which are the limit of a YAML document; JSON may have any length"
	const size = 1 << 30
	line := "  a: " + strings.Repeat("b", 100) + "\n"
	for name, test := range map[string]struct {
		start, repeat string
		want          string
	}{
		"YAML of one line":      {"a: ", "x", "document 1: " + yamlLimit},
		"YAML of many lines":    {"data:\n", line, "document 1: " + yamlLimit},
		"second document":       {"kind: List\n---\ndata:\n", line, "document 2: " + yamlLimit},
		"text in JSON":          {`{"kind": "`, "x", limit},
		"text in another field": {`{"kind": "Pod", "data": "`, "x", limit},
		"list in another field": {`{"kind": "Pod", "data": [`, "1, ", limit},
		"an item of JSON":       {`{"items": [{"kind": "Pod"}, {"metadata": {"labels": {`, `"a": "b", `, limit},
		"space in JSON":         {`{`, " ", limit},
	} {
		t.Run(name, func(t *testing.T) {
			stream := io.MultiReader(strings.NewReader(test.start), repeated(test.repeat, size))
			var err error
			bytes := allocated(func() { err = podlist.New().Read("input", stream) })
			require.ErrorContains(t, err, "input: ")
			require.ErrorContains(t, err, test.want)
			require.Less(t, bytes, uint64(512<<20))
			left, err := io.Copy(io.Discard, stream)
			require.NoError(t, err)
			require.Greater(t, left, int64(size-64<<20), "bytes that were not read")
		})
	}
}

func TestAliasesThatGrowAreRefused(t *testing.T) {
	var lists, fields strings.Builder
	fmt.Fprint(&lists, "l0: &l0 {kind: Pod}\n")
	fmt.Fprint(&fields, "l0: &l0 {a: b}\n")
	for i := 1; i < 20; i++ {
		alias := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", ")
		fmt.Fprintf(&lists, "l%d: &l%d {kind: List, items: [%s]}\n", i, i, alias)
		fmt.Fprintf(&fields, "l%d: &l%d {<<: [%s]}\n", i, i, alias)
	}
	long := "x: &x [" + strings.Repeat("{name: a, lifecycle: {preStop: {exec: {command: [sleep, '5']}}}}, ", 1000) + "]\n"
	for name, text := range map[string]string{
		"lists":      lists.String() + "items: [*l19]\nkind: List\n",
		"containers": long + "p: &p {kind: Pod, spec: {containers: *x}}\nq: &q {kind: List, items: [" + strings.Repeat("*p, ", 1000) + "]}\nitems: [" + strings.Repeat("*q, ", 1000) + "]\n",
		"texts":      "a: &a " + strings.Repeat("x", 1<<20) + "\nitems: [" + strings.Repeat("{metadata: {name: *a}}, ", 10_000) + "]\nkind: List\n",
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes := allocated(func() { err = podlist.New().Read("input", strings.NewReader(text)) })
			require.EqualError(t, err, "input: document 1: is too large: its aliases stand for more than twice its bytes")
			require.Less(t, bytes, uint64(64<<20))
		})
	}
	t.Run("aliases in fields that are not read", func(t *testing.T) { // they are never expanded
		require.NoError(t, podlist.New().Read("input", strings.NewReader(fields.String()+"kind: Pod\n")))
	})
}

func TestALongListTakesLittleMemory(t *testing.T) {
	const items = 10_000
	json := `{"kind": "ConfigMap", "data": {"text": "` + strings.Repeat("x", 5000) + `"}}, `
	for name, stream := range map[string]io.Reader{
		"JSON": io.MultiReader(strings.NewReader(`{"items": [`), repeated(json, items*int64(len(json))), strings.NewReader(`{"kind": "ConfigMap"}]}`)),
	} {
		t.Run(name, func(t *testing.T) {
			cluster := podlist.New()
			measured := &heapReader{Reader: stream}
			require.NoError(t, cluster.Read("input", measured))
			require.GreaterOrEqual(t, cluster.Others["ConfigMap"], items)
			require.Less(t, measured.largest, uint64(24<<20), "bytes of the heap, with a list of 50 MB")
		})
	}
}

// heapReader measures the heap after every 8 MiB that are read from it.
type heapReader struct {
	io.Reader
	read    int    // since the last measurement
	largest uint64 // heap in bytes
}

func (r *heapReader) Read(to []byte) (int, error) {
	n, err := r.Reader.Read(to)
	if r.read += n; r.read > 8<<20 {
		r.read = 0
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		r.largest = max(r.largest, stats.HeapAlloc)
	}
	return n, err
}
