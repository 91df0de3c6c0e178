package webdeliverytest_test

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// deploy stands for a user's program. Its tests are those on the package page.
func deploy(ctx context.Context, client *webdelivery.Client, uri string) error {
	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact(uri)},
	})
	if err != nil {
		return err
	}
	_, err = client.Purge.Wait(ctx, receipt.TransactionID)
	return err
}

func TestDeployPurgesThePage(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	err := deploy(t.Context(), srv.Client(t), "https://www.example.com/")
	if err != nil || len(srv.Purged()) != 1 {
		t.Errorf("%v after %d purges", err, len(srv.Purged()))
	}
}

func TestDeployRepeatsItsPurge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		srv.Fail(webdeliverytest.FaultRule{
			Path: "/cache/purge", Count: 1, Status: 503, Header: http.Header{"Retry-After": {"7"}},
		})
		began := time.Now()
		err := deploy(t.Context(), srv.Client(t), "https://www.example.com/")
		if took := time.Since(began); err != nil || took < 7*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// The package page shows the tests above.
func TestPackagePageIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	tests, err := os.ReadFile("doc_test.go")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?m)(^//\t.*\n)+`).FindAllString(string(page), -1)
	require.Len(t, shown, 2)
	for _, test := range shown {
		test = strings.ReplaceAll("\n"+test, "\n//\t", "\n")
		assert.Contains(t, strings.ReplaceAll(string(tests), "\n\tt.Parallel()\n", "\n"), test)
	}
}
