package timeline

import (
	"embed"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageFile embed.FS

// Page is what is drawn.
type Page struct {
	Title string
	// Text is said under the title, a paragraph each.
	Text  []string
	Nodes []Node
	// Changes is said at the end: what to do about it.
	Changes []Change
}

// Change is something to change, with lines that can be pasted.
type Change struct {
	Text  string
	Lines []string
}

// Node is the shutdown of one node. Its times count from the announcement.
type Node struct {
	Name string
	// Text is said above the bars, a paragraph each.
	Text []string
	// Limit is when the host goes on by itself; 0: not known, or never.
	Limit time.Duration
	// Release is when the host is let go; 0: not known.
	Release time.Duration
	// Buckets are in the order in which they are drained.
	Buckets []Bucket
}

// Bucket is a part of the shutdown.
type Bucket struct {
	Name string
	Pods []Pod
}

// Pod is one row: a bar for the plan, one for what has happened, or both.
type Pod struct {
	Name string
	// Facts is said beside the name, in a few words.
	Facts string
	// Text is said under the bars.
	Text string
	// Bad marks the row: the pod is cut short, was killed, or its end is in doubt.
	Bad             bool
	Planned, Actual *Bar
}

// Bar is a span of time.
type Bar struct {
	Start, End time.Duration
	// Wanted is when it would have ended with all the time that was asked for; it is
	// drawn if it is after End.
	Wanted time.Duration
	// Open says that the end is not known: it lasted at least until End.
	Open bool
}

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	t, err := template.ParseFS(pageFile, "page.html")
	if err != nil {
		return err
	}
	return t.Execute(w, p.view())
}
