package operations_test

import (
	"context"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// withoutRule are the requests of the SDK that no rule of the service document covers, with the reason.
var withoutRule = map[string]string{}

// Some rule of internal/conformance, which does not import the SDK, tries every request that a client can send.
func TestEveryOperationHasARule(t *testing.T) {
	t.Parallel()
	tried := requestsOfRules(t)
	needed := map[string]bool{}
	for _, op := range operations.All() {
		request := op.Method + " " + op.Path
		needed[request] = true
		if anyMatches(tried, op.Method+" "+op.Pattern()) {
			assert.Empty(t, withoutRule[request], "rules try %s: withoutRule must not name it", request)
		} else {
			assert.NotEmpty(t, withoutRule[request],
				"%s: no rule of internal/conformance tries %s: add one, or a reason to withoutRule", op, request)
		}
	}
	for request := range withoutRule {
		assert.True(t, needed[request], "withoutRule names %s, which no operation sends", request)
	}
}

// requestsOfRules checks the rules on a fake, and returns the successful requests.
func requestsOfRules(t *testing.T) map[string]bool {
	t.Helper()
	clock := testserver.NewClock(func() time.Time { return time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC) })
	user := testserver.User{Name: "alice", Password: "correct-horse-battery"}
	server := testserver.New(testserver.Config{Clock: clock, EventsPerSecond: 0.002, Users: []testserver.User{user}})
	url, transport := server.ListenMemory(), server.Transport()
	defer func() {
		transport.CloseIdleConnections()
		assert.NoError(t, server.Close())
	}()
	operations.Fill(server, nil)
	service, err := conformance.NewService(conformance.Target{
		BaseURL: url, Customer: "acme", User: conformance.User{Name: user.Name, Password: user.Password},
		WriteList:  server.AddNetworkList(testserver.NetworkListSpec{}),
		DeleteList: server.AddNetworkList(testserver.NetworkListSpec{}),
		PurgeURI:   operations.NewObject, Transport: transport, Now: clock.Now,
		Wait: func(_ context.Context, d time.Duration) error {
			clock.Advance(d)
			return nil
		},
	})
	require.NoError(t, err)
	for _, rule := range conformance.Rules() {
		if !strings.Contains(rule.Text, "5,000") && rule.Text != "there is no limit on uri objects" { // they take long
			service.Try(t.Context(), rule)
		}
	}
	tried := map[string]bool{}
	for _, request := range server.Requests() {
		if request.Status < http.StatusMultipleChoices {
			tried[request.Method+" "+strings.TrimPrefix(request.Path, "/acme/v1")] = true
		}
	}
	return tried
}

func anyMatches(tried map[string]bool, pattern string) bool {
	for request := range tried {
		if matches, err := path.Match(pattern, request); matches && err == nil {
			return true
		}
	}
	return false
}
