package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// paragraph is text whose sentences belong together, with the line at which it begins.
type paragraph struct {
	line int
	text string
}

// goParagraphs gives the comments of a Go file and its messages.
func goParagraphs(name string, source []byte) ([]paragraph, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []paragraph
	for _, group := range file.Comments {
		c := collector{}
		shown := false // what an Example prints follows
		for _, comment := range group.List {
			line := files.Position(comment.Pos()).Line
			text, isLine := strings.CutPrefix(comment.Text, "//")
			shown = shown || output.MatchString(text)
			switch {
			case shown:
			case !isLine:
				c.add(line, strings.Trim(comment.Text, "/*"))
			case strings.HasPrefix(text, "\t"), linkDefinition.MatchString(text), directive.MatchString(text):
				c.end()
			default:
				c.add(line, text)
			}
		}
		all = append(all, c.all()...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && strings.HasPrefix(text, "webdelivery: ") {
			all = append(all, paragraph{files.Position(literal.Pos()).Line, text})
		}
		return true
	})
	return all, nil
}

var (
	directive      = regexp.MustCompile(`^(nolint|go:)`)
	output         = regexp.MustCompile(`(?i)^ *(unordered )?output:`)
	linkDefinition = regexp.MustCompile(`^ *\[[^\]]+\]: `)
	listMark       = regexp.MustCompile(`^\s*([-*]|[0-9]+\.)\s+`)
	ruleOfTable    = regexp.MustCompile(`^[\s|:-]+$`)
)

// pageParagraphs gives the text of a Markdown page without its code. A cell of a table is a paragraph of its own.
func pageParagraphs(page string) []paragraph {
	c := collector{}
	fenced := false
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			c.end()
		case fenced, linkDefinition.MatchString(line):
		case strings.HasPrefix(trimmed, "|"):
			c.end()
			if !ruleOfTable.MatchString(trimmed) {
				for _, cell := range strings.Split(strings.Trim(trimmed, "|"), "|") {
					c.add(i+1, cell)
					c.end()
				}
			}
		case strings.HasPrefix(trimmed, "#"):
			c.end()
			c.add(i+1, strings.TrimLeft(trimmed, "# "))
			c.end()
		default:
			c.add(i+1, line)
		}
	}
	return c.all()
}

// collector joins lines to paragraphs.
type collector struct {
	done  []paragraph
	open  []string
	began int
}

// add takes a line: an empty one ends the paragraph, and an item of a list begins one.
func (c *collector) add(line int, text string) {
	if strings.TrimSpace(text) == "" {
		c.end()
		return
	}
	if mark := listMark.FindString(text); mark != "" {
		c.end()
		text = text[len(mark):]
	}
	if len(c.open) == 0 {
		c.began = line
	}
	c.open = append(c.open, strings.TrimSpace(text))
}

func (c *collector) end() {
	if len(c.open) > 0 {
		c.done = append(c.done, paragraph{c.began, strings.Join(c.open, " ")})
	}
	c.open = nil
}

func (c *collector) all() []paragraph {
	c.end()
	return c.done
}
