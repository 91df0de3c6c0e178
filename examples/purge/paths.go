package main

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// matcher returns a function that makes the URIs of a line.
func matcher(base string, prefix, both bool) (func(line string) ([]webdelivery.PurgeURI, error), error) {
	root, err := url.Parse(base)
	if base != "" && (err != nil || root.Host == "" || root.Scheme != "https" && root.Scheme != "http") {
		return nil, program.Misused("-base %s: want a URL such as https://www.example.com/", base)
	}
	return func(line string) (uris []webdelivery.PurgeURI, err error) {
		urls := []string{line}
		if base != "" {
			if urls, err = below(root, line); err != nil {
				return nil, err
			}
		}
		switch {
		case prefix:
			return []webdelivery.PurgeURI{webdelivery.Prefix(urls[0])}, nil // that of a directory would purge its other files
		case both:
			for i, u := range urls {
				u = strings.TrimPrefix(strings.TrimPrefix(u, "https://"), "http://")
				urls[i] = "https://" + u
				urls = append(urls, "http://"+u)
			}
		}
		for _, u := range urls {
			uris = append(uris, webdelivery.Exact(u))
		}
		return uris, nil
	}, nil
}

// below returns the URL of a file, and for an index.html that of its directory.
func below(root *url.URL, name string) (urls []string, err error) {
	if strings.HasPrefix(name, `"`) { // git quotes names with unusual characters as Go does
		name, err = strconv.Unquote(name)
	}
	if err != nil || strings.Contains(name, "://") {
		return nil, &webdelivery.ValidationError{Field: "path", Reason: "is not a path as git prints it; leave out -base for a URL"}
	}
	file := root.JoinPath(browsers.Replace((&url.URL{Path: name}).EscapedPath())).String()
	if directory, isIndex := strings.CutSuffix(file, "/index.html"); isIndex {
		return []string{file, directory + "/"}, nil
	}
	return []string{file}, nil
}

// browsers keeps characters that package url escapes and browsers do not, because a purge compares bytes.
var browsers = strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")")
