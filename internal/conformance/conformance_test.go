package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// All rules hold on the fake, and each rule that can be tried is tried.
func TestService(t *testing.T) {
	t.Parallel()
	server, target := fake(testserver.Dialect{}, everything)
	target.BaseURL, target.Transport = server.ListenMemory(), server.Transport()
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	service, err := conformance.NewService(target)
	require.NoError(t, err)

	for _, rule := range conformance.Rules() { //nolint:paralleltest // the rules change the same service
		t.Run(rule.Section+"/"+rule.Text, func(t *testing.T) {
			tell(t, service.Try(t.Context(), rule))
		})
	}
}

// tell passes or fails the test of one rule. On the fake, a rule that could be tried must be tried.
func tell(t *testing.T, r conformance.Result) {
	t.Helper()
	switch {
	case r.Verdict == conformance.Differs:
		assert.Fail(t, "differs: "+r.Detail, "service-interface section %s: %s", r.Section, r.Text)
	case r.Verdict == conformance.NotTried && r.Unseen == "":
		assert.Fail(t, "not tried: "+r.Detail, "service-interface section %s: %s", r.Section, r.Text)
	case r.Verdict == conformance.NotTried:
		t.Skip(r.Detail)
	case r.Verdict == conformance.Seen:
		t.Log(r.Detail)
	}
}
