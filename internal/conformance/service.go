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
)

// Target says which service is looked at, and what may be changed there: nothing unless it is named.
type Target struct {
	BaseURL  string // without the customer
	Customer string
	User     User
	Visitor  User // may neither view the configuration nor purge PurgeURI; zero: nobody

	TasksPrefix string // path in front of /tasks (open point 1)

	WriteList     string // id of an empty list of type IP: entries are added and removed
	FullList      string // id of a list of type IP that has 50,000 entries: one more is tried
	DeleteList    string // id of a list that is deleted
	PurgeURI      string // an object that is purged, with all whose address begins like its own
	PurgeWildcard string // a pattern with a wildcard domain that is purged as a prefix

	ExceedPurgeRate bool // more than two purge requests a second may be sent

	Transport http.RoundTripper                          // nil means one of its own
	Now       func() time.Time                           // the service's time; nil means time.Now
	Wait      func(context.Context, time.Duration) error // nil means in real time
}

// User is somebody who may log in.
type User struct{ Name, Password string }

const (
	maxRequests = 2000 // a run sends no more, whatever the service answers
	maxBody     = 8 << 20
	timeout     = 30 * time.Second
)

// Service is a service that is looked at, and what was learnt about it. It is used by one goroutine.
type Service struct {
	Target

	base     *url.URL
	client   *http.Client
	requests int

	nextPurge time.Time // when another purge request may be sent

	learnt
}

// NewService prepares to look at a service. It sends nothing.
func NewService(t Target) (*Service, error) {
	base, err := url.Parse(strings.TrimSuffix(t.BaseURL, "/") + "/" + url.PathEscape(t.Customer) + "/v1")
	switch {
	case err != nil:
		return nil, errors.New("the base URL cannot be read") // without it: it might hold a password
	case base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the base URL must be a scheme, a host and a path alone")
	case base.Scheme != "https" && (base.Scheme != "http" || !isLoopback(base.Hostname())):
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
	return &Service{Target: t, base: base, client: &http.Client{
		Transport:     t.Transport,
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// probe is a rule on its way through the service.
type probe struct {
	*Service

	ctx    context.Context //nolint:containedctx // lives as long as the call of Try that it belongs to
	strict bool            // the rule is about the shape of the reply: what is not as it should be differs
}

// as gives a request credentials.
type as func(*http.Request)

func nobody(*http.Request) {}

// stranger is a user that no service has. A wrong password of one that exists might lock that one out.
func stranger(r *http.Request) { r.SetBasicAuth("conformance-nobody", "conformance-nothing") }

func (u User) basic(r *http.Request) {
	r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Name+":"+u.Password)))
}

func cookie(id string) as {
	return func(r *http.Request) { r.Header.Set("Cookie", "authtoken="+id) }
}

// reply is what the service answered.
type reply struct {
	p       *probe
	request string // method and path
	status  int
	header  http.Header
	body    []byte
}

// send sends a request to a path relative to {base_url}/{customer}/v1, which may have a query string. A request that
// cannot be sent ends the rule.
func (p *probe) send(method, path string, body any, who as) reply {
	return p.sendTo(method, p.base.String()+path, body, who)
}

func (p *probe) sendTo(method, address string, body any, who as) reply {
	p.requests++
	p.need(p.requests <= maxRequests, "the run has sent %d requests, which is its limit", maxRequests)
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		p.need(err == nil, "%v", err)
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(p.ctx, method, address, content)
	p.need(err == nil, "%v", err)
	name := method + " " + strings.TrimPrefix(r.URL.Path, p.base.Path)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	who(r)
	answer, err := p.client.Do(r)
	p.need(err == nil, "%s: %v", name, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	p.need(err == nil, "%s: %v", name, err)
	p.need(len(text) <= maxBody, "%s: the body has more than %d bytes", name, maxBody)
	return reply{p: p, request: name, status: answer.StatusCode, header: answer.Header, body: text}
}

// get reads with the user's own credentials.
func (p *probe) get(path string) reply { return p.send(http.MethodGet, path, nil, p.User.basic) }

// read is the body of a GET that must succeed for the rule to go on.
func (p *probe) read(path string) node {
	r := p.get(path)
	p.need(r.status == http.StatusOK, "%s was answered with %d", r.request, r.status)
	return r.json()
}

// relative cuts an address of a reply down to what follows {base_url}/{customer}/v1, whichever of the three forms it
// has (open point 29), and tells which. One of another origin is foreign, and nothing is ever sent to it.
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
func (r reply) wanted(statuses ...int) {
	r.p.want(slices.Contains(statuses, r.status), "%s was answered with %d, not with %s", r.request, r.status,
		strings.Trim(fmt.Sprint(statuses), "[]"))
}

// refused checks that a request was not carried out, where the document does not say how that is told.
func (r reply) refused(why string) {
	r.p.want(r.status >= 400 && r.status < 500, "%s %s was answered with %d", r.request, why, r.status)
}

// until looks again and again whether something has come true: a change may take time to show.
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
