package webdelivery_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// purgeObject is the first program of the package page.
func purgeObject(ctx context.Context, uri string) error {
	client, err := webdelivery.NewClientFromEnv() // or NewClient(baseURL, customer, BasicAuth(user, password))
	if err != nil {
		return err
	}
	_, err = client.Purge.SubmitAndWait(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact(uri)},
	})
	return err
}

func TestTheFirstProgram(t *testing.T) {
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	t.Setenv("WEBDELIVERY_BASE_URL", srv.URL)
	t.Setenv("WEBDELIVERY_CUSTOMER", srv.Customer)
	t.Setenv("WEBDELIVERY_USERNAME", srv.Username)
	t.Setenv("WEBDELIVERY_PASSWORD", srv.Password)
	t.Setenv("WEBDELIVERY_AUTH", "")

	require.NoError(t, purgeObject(t.Context(), "https://www.example.com/app.css"))
	require.Len(t, srv.Purged(), 1)
	assert.Equal(t, []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")}, srv.Purged()[0].URIs)
}

// Each program of the package page is in this file.
func TestPackagePageIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	own, err := os.ReadFile("doc_test.go")
	require.NoError(t, err)
	programs := string(own) + strings.ReplaceAll(string(own), "\n\t", "\n")

	shown := regexp.MustCompile(`(?m)(^//\t.*\n)+`).FindAllString(string(page), -1)
	require.Len(t, shown, 2)
	for _, block := range shown {
		if !strings.HasPrefix(block, "//\tGET, HEAD") { // the table of what the client retries
			assert.Contains(t, programs, strings.ReplaceAll("\n"+block, "\n//\t", "\n"))
		}
	}
}
