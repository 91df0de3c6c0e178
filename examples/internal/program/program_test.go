package program_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestEveryErrorHasItsExitCode(t *testing.T) {
	t.Parallel()
	set := flag.NewFlagSet("x", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	tests := []struct {
		name string
		err  error
		code int
		told string
	}{
		{"none", nil, program.Done, ""},
		{"help", program.Parse(set, []string{"-h"}), program.Done, ""},
		{"wrong flag", program.Parse(set, []string{"-y"}), program.Misuse, ""}, // package flag has told it
		{"misuse", program.Misused("no %s", "URI"), program.Misuse, "x: no URI\n"},
		{"any", errors.New("no network"), program.Failed, "x: no network\n"},
		{"wrapped", fmt.Errorf("purge: %w", &program.Exit{Code: 4, Err: errors.New("stale")}), 4, "x: purge: stale\n"},
		{"silent", &program.Exit{Code: 4}, 4, ""},
		{"refused before it was sent", &webdelivery.ValidationError{Field: "uris", Reason: "empty"}, program.Misuse, "uris"},
		{"partly done", &webdelivery.PartialError{}, program.Partly, ""},
		{"nothing failed", program.Ended(0, nil), program.Done, ""},
		{"all failed", program.Ended(0, errors.New("a"), errors.New("b")), program.Failed, "x: a\nx: b\n"},
		{"some failed", program.Ended(1, nil, errors.New("b")), program.Partly, "x: b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var told bytes.Buffer
			assert.Equal(t, tt.code, program.Code("x", &told, tt.err))
			if tt.told == "" && tt.code != program.Partly {
				assert.Empty(t, told.String())
			}
			assert.Contains(t, told.String(), tt.told)
		})
	}
}

// Without settings there is a fake service, and the program says so.
func TestConnect(t *testing.T) {
	t.Setenv("WEBDELIVERY_BASE_URL", "")
	var told bytes.Buffer
	service, err := program.Connect(&told, nil, nil, func(srv *webdeliverytest.Server) {
		srv.AddTask(webdeliverytest.TaskSpec{ID: "task-1"})
	})
	require.NoError(t, err)
	defer service.Close()
	assert.Contains(t, told.String(), "fake service")
	_, err = service.Client.Tasks.Get(t.Context(), "task-1")
	require.NoError(t, err)

	t.Setenv("WEBDELIVERY_BASE_URL", "https://api.example.com")
	t.Setenv("WEBDELIVERY_CUSTOMER", "")
	var invalid *webdelivery.ValidationError
	_, err = program.Connect(&told, nil, nil, nil)
	require.ErrorAs(t, err, &invalid)
}
