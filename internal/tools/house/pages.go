package main

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// page has the links, the anchors and the make commands of a Markdown file.
type page struct {
	links    []string
	anchors  map[string]bool
	commands []string // the lines and spans of code that call make or .ci/run
}

// checkPages checks the relative links and the make commands of all Markdown files. It does not check
// links to other hosts, because a commit does not change whether these answer.
func checkPages(repo repository) ([]string, error) {
	content, err := repo.read("Makefile")
	if err != nil {
		return nil, err
	}
	targets := parseMakefile(content)
	pages := map[string]page{}
	names := repo.match("", "*.md")
	for _, name := range names {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		if pages[name], err = parsePage(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var problems []string
	for _, name := range names {
		for _, link := range pages[name].links {
			if problem := linkProblem(repo, pages, name, link); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: the link %s %s", name, link, problem))
			}
		}
		for _, command := range pages[name].commands {
			for _, missing := range targets.unknown(command) {
				problems = append(problems, fmt.Sprintf("%s: %s: the Makefile has no %s", name, command, missing))
			}
		}
	}
	return problems, nil
}

// linkProblem returns what is wrong with a link in the page named from, "" if it leads somewhere.
func linkProblem(repo repository, pages map[string]page, from, link string) string {
	target, err := url.Parse(link)
	if err != nil {
		return "is no URL"
	}
	if target.Scheme != "" || target.Host != "" {
		if regexp.MustCompile(`^https://github\.com/kubegrace/kubegrace/(blob|tree)/`).MatchString(link) {
			return "leads to a file of this repository, and is not relative"
		}
		return ""
	}
	name := from
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
			found.addCommand(words(node, content))
		case *ast.CodeBlock:
			found.addScript(node.Lines(), content)
		case *ast.FencedCodeBlock:
			found.addScript(node.Lines(), content)
		case *ast.HTMLBlock:
			found.addHTML(node.Lines(), content)
		case *ast.RawHTML:
			found.addHTML(node.Segments, content)
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
		return -1
	}, title)
	unique := anchor
	for n := 1; p.anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", anchor, n)
	}
	p.anchors[unique] = true
}

// addScript adds the commands of a block of code.
func (p *page) addScript(lines *text.Segments, content []byte) {
	for line := range strings.Lines(string(lines.Value(content))) {
		p.addCommand(line)
	}
}

// addCommand adds a line or span of code if it calls make or .ci/run with arguments.
func (p *page) addCommand(code string) {
	words := strings.Fields(code)
	if len(words) > 1 && (words[0] == "make" || words[0] == ".ci/run") {
		p.commands = append(p.commands, strings.Join(words, " "))
	}
}

// addHTML adds the links and the anchors in HTML.
func (p *page) addHTML(lines *text.Segments, content []byte) {
	for _, match := range regexp.MustCompile(`\b(src|href|id|name)="([^"]+)"`).FindAllSubmatch(lines.Value(content), -1) {
		switch string(match[1]) {
		case "src", "href":
			p.links = append(p.links, string(match[2]))
		default:
			p.anchors[string(match[2])] = true
		}
	}
}

// words returns the text of a node without markup.
func words(node ast.Node, content []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if piece, isText := child.(*ast.Text); isText {
			b.Write(piece.Value(content))
			if piece.SoftLineBreak() {
				b.WriteByte(' ')
			}
			continue
		}
		b.WriteString(words(child, content))
	}
	return b.String()
}
