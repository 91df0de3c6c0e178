// Command prose checks the English of comments and pages against the rules in CONTRIBUTING.md. It finds sentences of
// more than 25 words, and words for which the project has another one.
//
//	go run ./prose [-max 25] [-tests] PATH...
//
// A PATH is a Go file, a Markdown page or a folder. Of Go files it reads the comments, and the texts of the messages
// that begin with "webdelivery: ". It prints one line for each finding and exits with 1 if there is one.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	limit := flag.Int("max", 25, "words in a sentence")
	tests := flag.Bool("tests", false, "read the comments of test files, too")
	flag.Parse()
	findings := 0
	for _, path := range flag.Args() {
		files, err := readable(path, *tests)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(2)
		}
		for _, file := range files {
			paragraphs, err := read(file)
			if err != nil {
				fmt.Fprintln(os.Stderr, "prose:", err)
				os.Exit(2)
			}
			for _, p := range paragraphs {
				for _, finding := range check(p.text, *limit) {
					fmt.Printf("%s:%d: %s\n", file, p.line, finding)
					findings++
				}
			}
		}
	}
	if findings > 0 {
		os.Exit(1)
	}
}

// readable lists the Go files and pages at a path.
func readable(path string, tests bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		case strings.HasSuffix(file, ".md"), strings.HasSuffix(file, ".go") && (tests || !strings.HasSuffix(file, "_test.go")):
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// read gives the paragraphs of a file.
func read(file string) ([]paragraph, error) {
	text, err := os.ReadFile(file) //nolint:gosec // that is what it is called for
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(file, ".md") {
		return pageParagraphs(string(text)), nil
	}
	return goParagraphs(file, text)
}
