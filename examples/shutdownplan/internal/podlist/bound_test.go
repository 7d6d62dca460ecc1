package podlist_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
)

// endless is a text over and over, in so many bytes.
func endless(text string, size int64) io.Reader {
	return io.LimitReader(&repeated{text: strings.Repeat(text, 1+(64<<10)/len(text))}, size)
}

type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(to []byte) (n int, err error) {
	n = copy(to, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// allocated is how much memory a function asks for, in bytes, collected in the meantime or
// not.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Of one object no more is read than an object can have, be it as large as a disk.
func TestObjectsThatAreTooLargeAreRefused(t *testing.T) {
	const limit = "is too large: it has more than 3145728 bytes (3 MiB), which are the limit of an object"
	const size = 1 << 30
	pod := "- kind: Pod\n  metadata: {name: a}\n"
	for name, test := range map[string]struct {
		begin, over string
		want        string
	}{
		"YAML of one line":      {"a: ", "x", "object 1: " + limit},
		"YAML of many lines":    {"data:\n", "  a: b\n", "object 1: " + limit},
		"a block of text":       {"kind: ConfigMap\ndata:\n  a: |\n", "    text\n", "object 1: " + limit},
		"YAML of comments":      {"", "# comment\n", "object 1: " + limit},
		"second item":           {"items:\n" + pod + "- kind: Pod\n", "  a: b\n", "object 2: " + limit},
		"an item of one line":   {"items:\n" + strings.Repeat(pod, 100) + "- ", "[", "object 100: " + limit},
		"behind the items":      {"items:\n" + pod + "kind: List\n", "more: text\n", "object 2: " + limit},
		"items in another form": {"items: [", "{kind: Pod}, ", "object 1: " + limit},
		"text in JSON":          {`{"kind": "`, "x", limit},
		"text nobody reads":     {`{"kind": "Pod", "data": "`, "x", limit},
		"a list nobody reads":   {`{"kind": "Pod", "data": [`, "1, ", limit},
		"an item of JSON":       {`{"items": [{"kind": "Pod"}, {"metadata": {"labels": {`, `"a": "b", `, limit},
		"space in JSON":         {`{`, " ", limit},
	} {
		t.Run(name, func(t *testing.T) {
			stream := io.MultiReader(strings.NewReader(test.begin), endless(test.over, size))
			var err error
			took := allocated(func() { err = podlist.New().Read(t.Context(), "input", stream) })
			require.ErrorContains(t, err, "input: ")
			require.ErrorContains(t, err, test.want)
			require.Less(t, took, uint64(64<<20), "bytes")
			left, err := io.Copy(io.Discard, stream)
			require.NoError(t, err)
			require.Greater(t, left, int64(size-16<<20), "bytes that were not read")
		})
	}
}

// A few lines of aliases stand for more pods than there are atoms.
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
			took := allocated(func() { err = podlist.New().Read(t.Context(), "input", strings.NewReader(text)) })
			require.EqualError(t, err, "input: object 1: is too large: its aliases stand for more than twice its bytes")
			require.Less(t, took, uint64(64<<20), "bytes")
		})
	}
	t.Run("merged", func(t *testing.T) { // of a field that is nobody's no alias is followed
		require.NoError(t, podlist.New().Read(t.Context(), "input", strings.NewReader(fields.String()+"kind: Pod\n")))
	})
}

// A list of any length goes through: what is kept does not grow with what is read.
func TestALongListTakesLittleMemory(t *testing.T) {
	const items = 10_000
	yaml := "- kind: ConfigMap\n  data:\n    text: " + strings.Repeat("x", 5000) + "\n"
	json := `{"kind": "ConfigMap", "data": {"text": "` + strings.Repeat("x", 5000) + `"}}, `
	for name, stream := range map[string]io.Reader{
		"YAML": io.MultiReader(strings.NewReader("items:\n"), endless(yaml, items*int64(len(yaml))), strings.NewReader("kind: List\n")),
		"JSON": io.MultiReader(strings.NewReader(`{"items": [`), endless(json, items*int64(len(json))), strings.NewReader(`{"kind": "ConfigMap"}]}`)),
	} {
		t.Run(name, func(t *testing.T) {
			cluster := podlist.New()
			watched := &heapWatch{Reader: stream}
			require.NoError(t, cluster.Read(t.Context(), "input", watched))
			require.GreaterOrEqual(t, cluster.Others["ConfigMap"], items)
			require.Less(t, watched.most, uint64(24<<20), "bytes of a list of 50 MB")
		})
	}
}

// heapWatch measures, while it is read, what is in use.
type heapWatch struct {
	io.Reader
	read int
	most uint64
}

func (w *heapWatch) Read(to []byte) (int, error) {
	n, err := w.Reader.Read(to)
	if w.read += n; w.read > 8<<20 {
		w.read = 0
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		w.most = max(w.most, stats.HeapAlloc)
	}
	return n, err
}
