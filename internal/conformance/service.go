package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Target names the service to check, and what the suite may change there. It changes nothing that is not named.
type Target struct {
	BaseURL  string // without the customer
	Customer string
	User     User
	Visitor  User // may neither view the configuration nor purge PurgeURI; the zero value means no such user

	TasksPrefix string // path in front of /tasks (open point 1)

	WriteList     string // id of an empty list of type IP; the suite adds and removes entries
	FullList      string // id of a list of type IP with 50,000 entries; the suite tries to add one
	DeleteList    string // id of a list that the suite deletes
	PurgeURI      string // an object to purge, with its protocol, together with all objects whose address begins with its own
	PurgeWildcard string // a pattern with a wildcard domain, to purge as a prefix

	ExceedPurgeRate bool // the suite may send more than two purge requests per second

	Transport http.RoundTripper                          // nil means a new transport
	Now       func() time.Time                           // the time of the service; nil means time.Now
	Wait      func(context.Context, time.Duration) error // nil means to wait in real time
}

// User is a user of the service.
type User struct{ Name, Password string }

const (
	maxRequests   = 2000 // the maximum per run, whatever the service does
	maxUnanswered = 5
	maxBody       = 8 << 20
	timeout       = 30 * time.Second
)

// Service is a service to check, with the facts learnt about it. It is not safe for concurrent use.
type Service struct {
	Target

	base       *url.URL
	client     *http.Client
	requests   int
	unanswered int                        // requests in a row
	secrets    *redact.Finder             // the service may repeat the credentials in any response
	nextPurge  time.Time                  // when the next purge request may be sent
	unnamed    map[string]map[string]bool // members, by type of the SDK

	// What the run has found out where the document leaves it open, and what it need not read again.
	tasksFound                                     bool
	created, listDeleted                           *response // of the one session of a run, and of the DeleteList
	begun                                          []int64   // transactions of the run
	withEntries                                    string    // id of a list
	startParam, entryKey, entryDelete, clearMethod string
	groupings                                      map[string][]string // by base path of the family
	span                                           [2]string           // of the queries
}

// NewService prepares the check of a service. It sends no request.
func NewService(t Target) (*Service, error) {
	base, err := url.Parse(strings.TrimSuffix(t.BaseURL, "/") + "/" + url.PathEscape(t.Customer) + "/v1")
	if err != nil {
		return nil, errors.New("the base URL cannot be read") // the message omits the URL, which may contain a password
	}
	host := base.Hostname()
	here := host == "localhost" || net.ParseIP(host).IsLoopback()
	switch {
	case base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the base URL must be a scheme, a host and a path alone")
	case base.Scheme != "https" && (base.Scheme != "http" || !here):
		return nil, errors.New("the base URL must begin with https://, as credentials are sent to it")
	case t.Customer == "" || t.User.Name == "":
		return nil, errors.New("customer and username are required")
	}
	if t.Transport == nil {
		t.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 10 * time.Second}
	}
	if t.Now == nil {
		t.Now = time.Now
	}
	if t.Wait == nil {
		t.Wait = wait
	}
	var secrets []redact.Secret
	for _, u := range []User{t.User, t.Visitor} {
		secrets = append(secrets, redact.New(u.Password), redact.New(u.encoded()))
	}
	return &Service{
		Target: t, base: base, unnamed: map[string]map[string]bool{}, secrets: redact.NewFinder(secrets...),
		groupings: map[string][]string{},
		client: &http.Client{
			Transport: t.Transport, Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// probe is the check of one rule on a service.
type probe struct {
	*Service

	ctx    context.Context // lives as long as its call of Try
	first  string          // id of an entry; see Rule.on
	strict bool            // the rule is about the shape of the response, so an unexpected value breaks it
}

// as sets the credentials of a request.
type as func(*http.Request)

// stranger is a user that no service has. A wrong password of an existing user might lock that user out.
func stranger(r *http.Request) { r.SetBasicAuth("conformance-nobody", "conformance-nothing") }

func (u User) basic(r *http.Request) { r.Header.Set("Authorization", "Basic "+u.encoded()) }

func (u User) encoded() string {
	return base64.StdEncoding.EncodeToString([]byte(u.Name + ":" + u.Password))
}

func cookie(id string) as {
	return func(r *http.Request) { r.Header.Set("Cookie", "authtoken="+id) }
}

// response is a response of the service.
type response struct {
	p       *probe
	request string // method and path
	status  int
	header  http.Header
	body    []byte
}

// send sends a request to a path relative to {base_url}/{customer}/v1, which may have a query string. If it cannot send
// the request, it ends the check.
func (p *probe) send(method, path string, body any, who as) response {
	p.requests++
	p.need(p.requests <= maxRequests, "the run has sent %d requests, which is its limit", maxRequests)
	p.need(p.unanswered < maxUnanswered, "the service did not answer %d requests in a row", maxUnanswered)
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		p.need(err == nil, "%v", err)
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(p.ctx, method, p.base.String()+path, content)
	p.need(err == nil, "%v", err)
	path = strings.TrimPrefix(r.URL.Path, p.base.Path)
	name := method + " " + path
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	who(r)
	p.unanswered++
	answer, err := p.client.Do(r)
	p.need(err == nil, "%s: %v", name, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	p.need(err == nil, "%s: %v", name, err)
	p.unanswered = 0
	p.need(len(text) <= maxBody, "%s: the body has more than %d bytes", name, maxBody)
	busy := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable
	p.need(!busy || path == purgePath, "the service was busy: %d", answer.StatusCode) // of a purge it is a rule
	if answer.StatusCode < http.StatusBadRequest {
		p.look(method, path, text)
	}
	return response{p: p, request: name, status: answer.StatusCode, header: answer.Header, body: text}
}

// get sends a GET request with the user's credentials.
func (p *probe) get(path string) response { return p.send(http.MethodGet, path, nil, p.User.basic) }

// read returns the body of a GET. If the GET does not succeed, read ends the check.
func (p *probe) read(path string) node {
	r := p.get(path)
	p.need(r.status == http.StatusOK, "%s returned %d", r.request, r.status)
	return r.json()
}

// relative returns the part of an address after {base_url}/{customer}/v1, and which of the three forms it has (open
// point 29). An address of another origin is foreign; the suite never sends a request to it.
func (p *probe) relative(address string) (path, form string) {
	origin := p.base.Scheme + "://" + p.base.Host
	if rest, ok := strings.CutPrefix(address, origin+p.base.EscapedPath()+"/"); ok {
		return "/" + rest, "absolute"
	}
	if rest, ok := strings.CutPrefix(address, p.base.EscapedPath()+"/"); ok {
		return "/" + rest, "with the path of the base in front"
	}
	if strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") {
		return address, "relative to the base"
	}
	return "", "foreign"
}

// wanted checks a status.
func (r response) wanted(statuses ...int) {
	r.p.want(slices.Contains(statuses, r.status), "%s returned %d instead of %s", r.request, r.status,
		strings.Trim(fmt.Sprint(statuses), "[]"))
}

// refused checks that the service rejected a request, where the document leaves the status open.
func (r response) refused(why string) {
	r.p.want(r.status >= 400 && r.status < 500, "%s %s returned %d", r.request, why, r.status)
}

// rejects checks that each query string is rejected with 400.
func (p *probe) rejects(path string, queries ...string) {
	for _, query := range queries {
		r := p.get(path + "?" + query)
		p.want(r.status == http.StatusBadRequest, "%s?%s returned %d", r.request, query, r.status)
	}
}

// until polls until done returns true, because a change may take time to appear.
func (p *probe) until(done func() bool) bool {
	for range 30 {
		if done() {
			return true
		}
		p.pause(2 * time.Second)
	}
	return done()
}

func (p *probe) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	err := p.Wait(p.ctx, d)
	p.need(err == nil, "%v", err)
}
