package timeline

import (
	_ "embed"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageTemplate string

// Page is one HTML page.
type Page struct {
	Title string
	// Text has the paragraphs under the title.
	Text []string
	// Changes are listed before the nodes, under the heading ChangeTitle.
	ChangeTitle string
	Changes     []Change
	// Begin is a table under the heading "Where to begin"; its first row is the header. Its first column
	// has names, and the others numbers.
	Begin [][]string
	// NodeText stands above the nodes, which are drawn one under the other, on the same scale.
	NodeText string
	Nodes    []Node
}

// Change is something to change, with lines that can be pasted. The Title begins a group of changes that
// belong together; it is "" for the others of the group.
type Change struct {
	Title, Text string
	Lines       []string
}

// Node is the shutdown of one node. Its times count from the announcement of the shutdown.
type Node struct {
	Name string
	// Text has the paragraphs above the bars.
	Text []string
	// Limit is when the host goes down even if it is not released; 0: not known, or never.
	Limit time.Duration
	// Release is when the host is released, so that it may go down; 0: not known.
	Release time.Duration
	// Buckets are in the order in which they are drained.
	Buckets []Bucket
}

// Bucket has the pods of one priority bucket.
type Bucket struct {
	// Priority is the lowest of the bucket.
	Priority int32
	Name     string
	Pods     []Pod
}

// Pod is one row of the page.
type Pod struct {
	Name string
	// Facts stand beside the name, in a few words.
	Facts string
	// Text stands under the bars.
	Text string
	// Bad highlights the row: the pod is cut short, was killed, or is not known to have ended.
	Bad bool
	// Planned and Actual are the bars for the plan and for what has happened; nil: no bar.
	Planned, Actual *Bar
}

// Bar is the time from the pod's stop to its end.
type Bar struct {
	Start, End time.Duration
	// Wanted is when the pod would end with all the time that it asks for. It is drawn if it
	// is after End.
	Wanted time.Duration
	// Open says that the end is not known: the pod ran at least until End.
	Open bool
	// Killed says that the pod was killed at End.
	Killed bool
}

// Write writes the page as HTML.
func (p Page) Write(w io.Writer) error {
	t, err := template.New("page.html").Parse(pageTemplate)
	if err != nil {
		return err
	}
	return t.Execute(w, p.view())
}
