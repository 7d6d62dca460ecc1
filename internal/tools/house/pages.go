package main

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// page has the links, the anchors and the code of a Markdown file.
type page struct {
	links   []string
	anchors map[string]bool
	code    []string // lines of blocks, and spans
}

// readPages parses all Markdown files.
func readPages(repo repository) (map[string]page, error) {
	pages := map[string]page{}
	for _, name := range repo.match("", "*.md") {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		if pages[name], err = parsePage(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return pages, nil
}

// checkLinks checks the relative links of all Markdown files. It does not check links to other hosts,
// because a commit does not change whether these answer.
func checkLinks(repo repository) (checked int, problems []string, err error) {
	pages, err := readPages(repo)
	for _, name := range repo.match("", "*.md") {
		for _, link := range pages[name].links {
			checked++
			if problem := linkProblem(repo, pages, name, link); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: the link %s %s", name, link, problem))
			}
		}
	}
	return checked, problems, err
}

// linkProblem returns what is wrong with a link in the page named from, "" if it leads somewhere.
func linkProblem(repo repository, pages map[string]page, from, link string) string {
	target, err := url.Parse(link)
	if err != nil {
		return "is no URL"
	}
	if target.Scheme != "" || target.Host != "" {
		return ""
	}
	name := from // a link without a path leads to the page itself
	if target.Path != "" {
		name = path.Join(path.Dir(from), target.Path)
	}
	if strings.HasPrefix(target.Path, "/") || strings.HasPrefix(name, "..") {
		return "leads out of the repository"
	}
	if !repo.exists(name) {
		return "leads to no file"
	}
	to, isPage := pages[name]
	if !isPage {
		to = pages[path.Join(name, "README.md")] // GitHub shows it below the list of a folder
	}
	if target.Fragment != "" && !to.anchors[target.Fragment] {
		return "leads to no heading"
	}
	return ""
}

// parsePage reads a Markdown file.
func parsePage(content []byte) (page, error) {
	found := page{anchors: map[string]bool{}}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(content))
	err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Link:
			found.links = append(found.links, string(node.Destination))
		case *ast.Image:
			found.links = append(found.links, string(node.Destination))
		case *ast.Heading:
			found.addHeading(words(node, content))
		case *ast.CodeSpan:
			found.code = append(found.code, words(node, content))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			found.code = append(found.code, strings.Split(string(node.Lines().Value(content)), "\n")...)
		}
		return ast.WalkContinue, nil
	})
	return found, err
}

// addHeading adds the anchor that GitHub makes for a heading: lower case, without punctuation, with
// hyphens for spaces, and with a number if an earlier heading has the same anchor.
func (p page) addHeading(title string) {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1 // leave it out
	}, title)
	unique := anchor
	for n := 1; p.anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", anchor, n)
	}
	p.anchors[unique] = true
}

// words returns the text of a node without markup.
func words(node ast.Node, content []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		piece, isText := child.(*ast.Text)
		if !isText {
			b.WriteString(words(child, content))
			continue
		}
		b.Write(piece.Value(content))
		if piece.SoftLineBreak() {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
