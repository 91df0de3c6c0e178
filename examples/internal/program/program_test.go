package program_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestEveryErrorHasItsExitCode(t *testing.T) {
	t.Parallel()
	set := program.Flags("x", "", program.Streams{Out: io.Discard})
	for _, tt := range []struct {
		err  error
		code int
		told string
	}{
		{nil, program.Done, ""},
		{program.Parse(set, []string{"-h"}), program.Done, ""},
		{program.Parse(set, []string{"-y"}), program.Misuse, "x: flag provided but not defined: -y; -h shows all flags\n"},
		{program.Misused("no %s", "URI"), program.Misuse, "x: no URI\n"},
		{errors.New("no network"), program.Failed, "x: no network\n"},
		{fmt.Errorf("purge: %w", &program.Exit{Code: 4, Err: errors.New("stale")}), 4, "x: purge: stale\n"},
		{&program.Exit{Code: 4}, 4, ""},
		{&webdelivery.ValidationError{Field: "uris", Reason: "empty"}, program.Misuse, "uris"},
		{&webdelivery.PartialError{}, program.Partly, ""},
		{program.Ended(0, nil), program.Done, ""},
		{program.Ended(0, errors.New("a"), errors.New("b")), program.Failed, "x: a\nx: b\n"},
		{program.Ended(1, nil, errors.New("b")), program.Partly, "x: b\n"},
	} {
		var told bytes.Buffer
		assert.Equal(t, tt.code, program.Code("x", &told, tt.err), "%v", tt.err)
		if tt.told == "" && tt.code != program.Partly {
			assert.Empty(t, told.String(), "%v", tt.err)
		}
		assert.Contains(t, told.String(), tt.told)
	}
}

// An error of the service or of the settings says what to do next.
func TestNextSteps(t *testing.T) {
	t.Parallel()
	closed := webdeliverytest.NewServer(t, webdeliverytest.WithAddress("127.0.0.1:0"))
	closed.Close()
	for step, fault := range map[string]*webdeliverytest.FaultRule{
		"check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD\n":                   {Status: http.StatusUnauthorized},
		"use a WEBDELIVERY_USERNAME that has the right to do this\n":              {Status: http.StatusForbidden},
		"check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER, and the id, if you": {Status: http.StatusNotFound},
		"check WEBDELIVERY_BASE_URL, and that the service is running\n":           nil,
		"": {Status: http.StatusBadRequest},
	} {
		srv := closed
		if fault != nil {
			srv = webdeliverytest.NewServer(t)
			srv.Fail(*fault)
		}
		client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
		require.NoError(t, err)
		_, err = client.Tasks.Get(t.Context(), "task-1")
		require.Error(t, err)
		var told bytes.Buffer
		assert.Equal(t, program.Failed, program.Code("x", &told, err))
		first, second, _ := strings.Cut(told.String(), "\n")
		assert.Equal(t, "x: "+err.Error(), first)
		if step == "" {
			assert.Empty(t, second)
			continue
		}
		assert.True(t, strings.HasPrefix(second, "x: "+step), second)
	}
}

// Without settings the program uses a fake service, and says so.
func TestConnect(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	var told bytes.Buffer
	service, err := program.Connect(&told, nil, nil, func(srv *webdeliverytest.Server) {
		srv.AddTask(webdeliverytest.TaskSpec{ID: "task-1"})
	})
	require.NoError(t, err)
	defer service.Close()
	assert.Contains(t, told.String(), "fake service")
	_, err = service.Client.Tasks.Get(t.Context(), "task-1")
	require.NoError(t, err)
}

// If only some of the settings are set, the program fails and names the missing ones. It does not use a fake service.
func TestConnectWithSomeSettings(t *testing.T) {
	for name, value := range settings {
		t.Run(name, func(t *testing.T) {
			programtest.NoService(t)
			t.Setenv(name, value)
			var told bytes.Buffer
			_, err := program.Connect(&told, nil, nil, func(*webdeliverytest.Server) { t.Error("there is a fake service") })
			assert.Empty(t, told.String())
			assert.Equal(t, program.Misuse, program.Code("x", &told, err))
			assert.True(t, strings.HasSuffix(told.String(), "or unset the others to use a fake service\n"), told.String())
			for other := range settings {
				assert.Equal(t, other != name, strings.Contains(told.String(), other+": is not set"), told.String())
			}
		})
	}
	for name, value := range settings {
		t.Setenv(name, value)
	}
	service, err := program.Connect(io.Discard, nil, nil, nil)
	require.NoError(t, err)
	service.Close()

	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	t.Setenv("WEBDELIVERY_PASSWORD", "")
	t.Setenv("WEBDELIVERY_PASSWORD_FILE", file)
	service, err = program.Connect(io.Discard, nil, nil, nil)
	require.NoError(t, err)
	service.Close()
}

var settings = map[string]string{
	"WEBDELIVERY_BASE_URL": "https://api.example.com", "WEBDELIVERY_CUSTOMER": "acme",
	"WEBDELIVERY_USERNAME": "alice", "WEBDELIVERY_PASSWORD": "secret",
}
