//go:build peers

package bench

import (
	"context"
	"encoding/json"
	"io"

	"github.com/digitalocean/godo"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

func init() {
	peers = append(peers, []peer{
		{"go-retryablehttp", "/retryable", taskBody, retryableGet},
		{"godo", "/v2/actions/17", `{"action":{"id":17,"status":"completed","type":"create","started_at":"2026-11-20T08:30:00Z",` +
			`"completed_at":"2026-11-20T08:31:00Z","resource_id":18,"resource_type":"droplet","region":{"slug":"example1",` +
			`"name":"Example 1","sizes":["small","large"],"available":true,"features":["backups","ipv6","metadata"]},` +
			`"region_slug":"example1"}}`, godoGet},
		{"hcloud-go", "/actions/17", `{"action":{"id":17,"command":"start_resource","status":"success","progress":100,` +
			`"started":"2026-11-20T08:30:00Z","finished":"2026-11-20T08:31:00Z","resources":[{"id":18,"type":"server"},` +
			`{"id":19,"type":"volume"}],"error":{"code":"action_failed","message":"Action failed, and here is why it did so"}}}`, hcloudGet},
	}...)
}

func retryableGet(url string) (func() error, error) {
	client := retryablehttp.NewClient()
	client.Logger = nil
	return func() error {
		resp, err := client.Get(url + "/retryable")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var task plainTask
		err = json.Unmarshal(body, &task)
		return found(err, task.ID == "task-1")
	}, nil
}

func godoGet(url string) (func() error, error) {
	client, err := godo.New(godo.NewFromToken("token").HTTPClient, godo.SetBaseURL(url+"/"))
	return func() error {
		action, _, err := client.Actions.Get(context.Background(), 17)
		return found(err, action != nil && action.ID == 17)
	}, err
}

func hcloudGet(url string) (func() error, error) {
	client := hcloud.NewClient(hcloud.WithEndpoint(url), hcloud.WithToken("token"))
	return func() error {
		action, _, err := client.Action.GetByID(context.Background(), 17)
		return found(err, action != nil && action.ID == 17)
	}, nil
}
