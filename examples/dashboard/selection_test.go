package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// If the page cannot read a selection, it says why, marks the place, and sends nothing.
func TestWrongSelection(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"filter=client_country_code": {"The filter cannot be read", "<pre><mark>client_country_code</mark></pre>", "At character 1: "},
		"filter=" + url.QueryEscape("a==1;ä==2;client_country=CN;b==3"): {
			"<pre>a==1;ä==2;<mark>client_country=CN</mark>;b==3</pre>", "At character 11: ",
		},
		"filter=" + url.QueryEscape(`a==1;b==2,c==3`):              {"<pre>a==1;b==2<mark>,</mark>c==3</pre>", "At character 10: "},
		"filter=" + url.QueryEscape(`a==1;b`):                      {"<pre>a==1;<mark>b</mark></pre>", "At character 6: "},
		"filter=" + url.QueryEscape(`a==1;`):                       {"<pre>a==1;<mark></mark></pre>", "At character 6: "},
		"filter=" + url.QueryEscape(`a;b==2`):                      {"<pre><mark>a</mark>;b==2</pre>"},
		"filter=" + url.QueryEscape(`a\,b;c==3`):                   {`<pre><mark>a\,b</mark>;c==3</pre>`},
		"filter=" + url.QueryEscape(`"><script>alert(1)</script>`): {"<mark>&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;</mark>"},
		"country=CH": {"Country cannot be read", "<pre><mark>CH</mark></pre>"},
		"country=a==0&filter=" + url.QueryEscape("a==1,b==2"):         {"<h2>Country cannot be combined with a filter that has OR</h2>"},
		"country=a==0&action=b==1&filter=" + url.QueryEscape("a,b=="): {"The filter cannot be read"},
		"country=a==0&action=b==1&filter=" + url.QueryEscape("a==1,b==2"): {
			"<h2>Country and Action cannot be combined with a filter that has OR</h2>", "Set Country and Action to “any”",
		},
		"since=2w":   {"The time range cannot be read", "&#34;2w&#34;", "30m, 12h, 7d"},
		"since=1m":   {"The time range cannot be read", "from 5m to 366d"},
		"since=367d": {"from 5m to 366d"},
	} {
		inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
			w := get(shown, query)
			body := beforeScripts(w.Body.String())
			assert.Equal(t, http.StatusBadRequest, w.Code, query)
			for _, text := range want {
				assert.Contains(t, body, text, query)
			}
			assert.Equal(t, 1, strings.Count(body, alert), query)
			assert.NotContains(t, body, "Not available", query)
			assert.Contains(t, body, "</main>")
			assert.Contains(t, w.Body.String(), "</html>")
			assert.Empty(t, srv.Requests())
		})
	}
}
