package webdelivery_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// documentRule is one endpoint of the service document: what a request to it may be.
type documentRule struct {
	method, path string            // the path as an expression
	required     []string          // parameters
	allowed      map[string]string // parameters, and expressions of their values
	body         func(t *document, body []byte)
}

const (
	aNumber = `[1-9][0-9]*`
	aUTC    = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}`
	names   = `[^, ]+(,[^, ]+)*`
)

var (
	// A comparison of section 4.2: commas and semicolons of the value are escaped.
	comparison   = `[^=!,; ]+(==|!=)(\\[,;]|[^,;\\]|\\[^,;])*\\?`
	oneFilter    = `^` + comparison + `((,` + comparison + `)*|(;` + comparison + `)*)$`
	rawEvents    = map[string]string{"dimensions": names, "starttime": aUTC, "endtime": aUTC, "filters": `(?s).*`, "sortby": `-?[^, ]+(,-?[^, ]+)*`, "limit": aNumber}
	aggregated   = with(rawEvents, map[string]string{"metrics": "hits"})
	trendsParams = with(aggregated, map[string]string{"granularity": "day|hour|5minute"})
	topK         = map[string]string{"dimensions": names, "metrics": "hits", "starttime": aUTC, "endtime": aUTC, "filters": `(?s).*`}
	paged        = map[string]string{"page": aNumber, "count": aNumber}
)

func with(a, b map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// documentRules are sections 4.1 to 4.6, and of the open points what the SDK does by default.
func documentRules() []documentRule {
	need := []string{"dimensions", "starttime", "endtime"}
	list := "/config/networklists/[^/]+"
	rules := []documentRule{
		{"GET", "/tasks", nil, with(paged, map[string]string{"since": aUTC + `\.[0-9]{3}\+0000`, "status": ".+", "operation": ".+"}), nil},
		{"GET", "/tasks/[^/]+", nil, nil, nil},
		{"POST", "/cache/purge", nil, nil, (*document).purge},
		{"GET", "/transactions/[0-9]+", nil, nil, nil},
		{"POST", "/sessions", nil, nil, nil},
		{"GET", "/config/networklists", nil, with(paged, map[string]string{"type": "IP|GEO", "deprecated": "true|false"}), nil},
		{"GET", list, nil, map[string]string{"includelist": "true|false"}, nil},
		{"DELETE", list, nil, nil, nil},
		{"GET", list + "/entries", nil, paged, nil},
		{"POST", list + "/entries", nil, nil, (*document).entries},
		{"GET", list + "/entries/[^/]+", nil, nil, nil},
		{"DELETE", list + "/[^/]+", nil, nil, nil},
		{"POST", list + "/entries/deletions", nil, nil, nil},
	}
	for _, family := range []struct {
		path    string
		need    []string
		allowed map[string]string
	}{
		{"/stats/security/events", need, rawEvents},
		{"/stats/security/waf/trends", append([]string{"metrics", "granularity"}, need...), trendsParams},
		{"/stats/security/request/trends", append([]string{"metrics"}, need...), trendsParams}, // whether granularity applies is not shown
		{"/stats/security/trafficshaping/trends", append([]string{"metrics", "granularity"}, need...), trendsParams},
		{"/stats/security/waf/topk/(browser|clientip|country|requestpath|ruleid|severity)", append([]string{"metrics"}, need...), topK},
		{
			"/stats/security/trafficshaping/topk/(browser|clientip|country|ratelimitclientip|ratelimitcountry|requestpath)",
			append([]string{"metrics"}, need...), aggregated,
		},
	} {
		rules = append(rules, documentRule{"GET", family.path + "/data", family.need, family.allowed, nil}, documentRule{"HEAD", family.path, family.need, family.allowed, nil},
			documentRule{"GET", family.path + "/(dimensions|groupings|metrics)", nil, nil, nil})
	}
	return rules
}

// document is a service that judges every request by the service document, and answers all of them.
type document struct {
	t testing.TB

	mu       sync.Mutex
	requests map[string]int // by method and expression of the path
}

func (d *document) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.judge(r, body)
	address, _ := strings.CutPrefix(r.URL.Path, "/acme/v1")
	return response(http.StatusOK, everyResponse{
		text: honestText, page: 1, address: func(member string) string {
			if member == "entries_batch_deletion_uri" {
				return address + "/entries/deletions"
			}
			return address
		},
	}.to(r)), nil
}

// wrong reports what the document forbids.
func (d *document) wrong(format string, args ...any) { d.t.Errorf(format, args...) }

func (d *document) judge(r *http.Request, body []byte) {
	address, found := strings.CutPrefix(r.URL.EscapedPath(), "/acme/v1")
	if !found {
		d.wrong("%s is not below {base_url}/<customer_name>/v1", r.URL)
		return
	}
	// Section 5.
	credentials := "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))
	cookie, err := r.Cookie("authtoken")
	if r.Header.Get("Authorization") != credentials && (err != nil || cookie.Value == "") {
		d.wrong("%s %s without credentials", r.Method, address)
	}
	for _, rule := range documentRules() {
		if r.Method != rule.method || !regexp.MustCompile("^"+rule.path+"$").MatchString(address) {
			continue
		}
		d.requests[rule.method+" "+rule.path]++
		query, err := url.ParseQuery(r.URL.RawQuery)
		require.NoError(d.t, err)
		for _, name := range rule.required {
			if query.Get(name) == "" {
				d.wrong("%s: %s is missing", r.URL, name)
			}
		}
		for name, values := range query {
			if pattern := rule.allowed[name]; pattern == "" || len(values) != 1 || !regexp.MustCompile("^("+pattern+")$").MatchString(values[0]) {
				d.wrong("%s %s: %s=%q", r.Method, address, name, values)
			}
		}
		if start, end := query.Get("starttime"), query.Get("endtime"); end != "" && end <= start {
			d.wrong("%s: endtime is not later than starttime", r.URL)
		}
		if text := query.Get("filters"); query.Has("filters") && !regexp.MustCompile("(?s)"+oneFilter).MatchString(text) {
			d.wrong("filters=%q", text)
		}
		if rule.body != nil {
			if r.Header.Get("Content-Type") != "application/json" {
				d.wrong("%s %s: Content-Type %q", r.Method, address, r.Header.Get("Content-Type"))
			}
			rule.body(d, body)
		} else if len(body) > 0 {
			d.wrong("%s %s has a body: %s", r.Method, address, body)
		}
		return
	}
	d.wrong("the document has no %s %s", r.Method, address)
}

// strict decodes a body that has these members and no others.
func (d *document) strict(body []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		d.wrong("%v in %s", err, body)
	}
}

// purge is section 2.2.
func (d *document) purge(body []byte) {
	var request struct {
		Purge struct {
			Action string `json:"action"`
			URIs   []struct {
				Mode     string  `json:"match_mode"`
				Pattern  string  `json:"uri_pattern"`
				Modifier *string `json:"cache_key_modifier_regex"`
			} `json:"uris"`
		} `json:"purge_request"`
	}
	d.strict(body, &request)
	if a := request.Purge.Action; a != "PURGE" && a != "EXPIRE" || len(request.Purge.URIs) == 0 {
		d.wrong("purge request %s", body)
	}
	for _, u := range request.Purge.URIs {
		exact := u.Mode == "EXACT_LITERAL"
		if !exact && u.Mode != "PREFIX_LITERAL" || u.Pattern == "" || exact && u.Modifier != nil {
			d.wrong("uri object %+v", u)
		}
		if u.Modifier != nil && strings.Contains(strings.TrimSuffix(*u.Modifier, "*"), "*") {
			d.wrong("the wildcard of %q is no suffix", *u.Modifier)
		}
	}
}

// entries is section 4.6, with the limit of section 8.
func (d *document) entries(body []byte) {
	var entries []struct {
		Entry string `json:"entry"`
	}
	d.strict(body, &entries)
	if len(entries) == 0 || len(entries) > 5000 {
		d.wrong("%d entries in one call", len(entries))
	}
	for _, e := range entries {
		if !regexp.MustCompile(`^([A-Z]{2}|[0-9.]+(/[0-9]+)?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(/[0-9]+)?)$`).MatchString(e.Entry) {
			d.wrong("entry %q", e.Entry)
		}
	}
}

// Whatever the client is asked to do, it sends no request that the service document forbids: every operation, with every
// kind of credentials.
func TestRequestsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	met := map[string]int{}
	for _, auth := range []webdelivery.Auth{webdelivery.BasicAuth(username, password), webdelivery.SessionAuth(username, password)} {
		synctest.Test(t, func(t *testing.T) {
			for _, op := range everyStep() {
				if strings.HasPrefix(op.Name, "Do") {
					continue // sends what it is told
				}
				service := &document{t: t, requests: met}
				host := fmt.Sprintf("https://api%d.example.com", foreignHosts.Add(1))
				client, err := webdelivery.NewClient(host, customer, auth, webdelivery.WithHTTPClient(&http.Client{Transport: service}))
				require.NoError(t, err)
				_ = op.run(t.Context(), client, func(...any) {})
			}
		})
	}
	for _, rule := range documentRules() {
		if !strings.Contains(rule.path, "stats/security") { // everyStep has one family for each method
			assert.NotZero(t, met[rule.method+" "+rule.path], "no operation sent %s %s", rule.method, rule.path)
		}
	}
}

// Queries with random values are refused by the client, or are as the document wants them.
func TestRandomQueriesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "client_ip", "a,b", "a b", `x\`, `x\,y`, "ü", "==", "a==b;c", "-hits", "\x00", "hits", "5minute", "IP", "192.0.2.1", "de"}
	entries := []string{"192.0.2.1", "de", "", "2001:DB8::/32", "xx", "::ffff:192.0.2.1", "192.0.2.7/24", "fe80::1%eth0", "192.0.2.1/33"}
	text := func() string { return texts[r.IntN(len(texts))] }
	several := func() []string { return texts[r.IntN(len(texts)):][:r.IntN(2)] }
	at := func() time.Time {
		return time.Unix(int64(r.IntN(4e9)), int64(r.IntN(2e9))).In(time.FixedZone("x", r.IntN(80_000)-40_000))
	}
	filter := func() filters.Expr {
		one := func() filters.Filter {
			return filters.Filter{Dimension: text(), Operator: filters.Equal, Value: text() + text()}
		}
		return []filters.Expr{nil, one(), filters.And(one(), one()), filters.Or(one(), one(), filters.Ne("a", text()))}[r.IntN(4)]
	}
	sent := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		client, err := webdelivery.NewClient(fmt.Sprintf("https://api%d.example.com", foreignHosts.Add(1)), customer, webdelivery.BasicAuth(username, password),
			webdelivery.WithHTTPClient(&http.Client{Transport: &document{t: t, requests: sent}}))
		require.NoError(t, err)
		for range 5000 {
			dimensions, sort := append(several(), several()...), []webdelivery.Sort{}
			for _, name := range several() {
				sort = append(sort, webdelivery.Desc(name))
			}
			start := at()
			end := start.Add(time.Duration(r.Int64N(int64(3*time.Second)) - int64(time.Second)))
			limit := r.IntN(5) - 1
			switch r.IntN(5) {
			case 0:
				_, _ = client.Stats.Events.Query(t.Context(), webdelivery.EventsQuery{Dimensions: dimensions, Start: start, End: end, Filter: filter(), SortBy: sort, Limit: limit})
			case 1:
				_, _ = client.Stats.WAFTrends.Query(t.Context(), webdelivery.TrendsQuery{
					Dimensions: dimensions, Metrics: several(), Start: start, End: end, Granularity: webdelivery.Granularity([]string{"", "hour", "week"}[r.IntN(3)]), Filter: filter(), SortBy: sort, Limit: limit,
				})
			case 2:
				_, _ = client.Stats.WAFTopK(webdelivery.WAFByBrowser).Query(t.Context(), webdelivery.WAFTopKQuery{Dimensions: dimensions, Start: start, End: end, Filter: filter()})
			case 3:
				_, _ = client.Tasks.List(t.Context(), webdelivery.TaskListOptions{Since: start, Status: text(), Operation: text(), Page: limit, Count: limit})
			default:
				_, _ = client.NetworkLists.AddEntries(t.Context(), "l"+strconv.Itoa(limit), []string{entries[r.IntN(len(entries))], entries[r.IntN(len(entries))]})
			}
		}
	})
	assert.Greater(t, len(sent), 4, "all kinds of requests were sent")
}
