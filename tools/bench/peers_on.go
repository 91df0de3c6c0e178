//go:build peers

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/cloudflare/cloudflare-go/v7/accounts"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/digitalocean/godo"
	"github.com/google/go-github/v88/github"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

var errWrongResponse = errors.New("not what was asked for")

// found checks a response.
func found(err error, right bool) error {
	if err == nil && !right {
		return errWrongResponse
	}
	return err
}

func init() {
	topics = []topic{{"peers", (*bench).comparePeers}}
	peers = []peer{
		{"go-retryablehttp and encoding/json", "/retryable", taskBody, retryableGet},
		{"godo", "/v2/actions/17", `{"action":{"id":17,"status":"completed","type":"create","started_at":"2026-11-20T08:30:00Z",` +
			`"completed_at":"2026-11-20T08:31:00Z","resource_id":18,"resource_type":"droplet","region":{"slug":"example1",` +
			`"name":"Example 1","sizes":["small","large"],"available":true,"features":["backups","ipv6","metadata"]},` +
			`"region_slug":"example1"}}`, godoGet},
		{"hcloud-go", "/actions/17", `{"action":{"id":17,"command":"start_resource","status":"success","progress":100,` +
			`"started":"2026-11-20T08:30:00Z","finished":"2026-11-20T08:31:00Z","resources":[{"id":18,"type":"server"},` +
			`{"id":19,"type":"volume"}],"error":{"code":"action_failed","message":"Action failed, and here is why it did so"}}}`, hcloudGet},
		{"go-github", "/api/v3/repos/example/site/deployments/17", `{"id":17,"sha":"a84d88e7554fc1fa21bcbc4efae3c782a70d2b9d",` +
			`"ref":"topic-branch","task":"deploy","payload":{},"environment":"production","description":"Deploy request",` +
			`"creator":{"login":"octo","id":18,"type":"User"},"created_at":"2026-11-20T08:30:00Z",` +
			`"updated_at":"2026-11-20T08:31:00Z","statuses_url":"https://api.example.com/deployments/17/statuses"}`, githubGet},
		{"cloudflare-go", "/accounts/a17", `{"success":true,"errors":[],"messages":[],"result":{"id":"a17","name":"Example",` +
			`"type":"standard","created_on":"2026-11-20T08:30:00Z","managed_by":{"parent_org_id":"p18","parent_org_name":"Parent"},` +
			`"settings":{"abuse_contact_email":"abuse@example.com","enforce_twofactor":true}}}`, cloudflareGet},
	}
}

// comparePeers measures the same GET with other SDKs.
func (b *bench) comparePeers() error {
	results, err := b.smallGets(true)
	if err != nil {
		return err
	}
	for _, g := range results {
		m := g.cost()
		b.peers.add(g.Name, inTime(m.time()), times(m.ratio(results[0].cost())), fmt.Sprintf("%.0f", m.allocs))
	}
	return nil
}

func retryableGet(url string) (subject, error) {
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

func godoGet(url string) (subject, error) {
	client, err := godo.New(godo.NewFromToken("token").HTTPClient, godo.SetBaseURL(url+"/"))
	return func() error {
		action, _, err := client.Actions.Get(context.Background(), 17)
		return found(err, action != nil && action.ID == 17)
	}, err
}

func hcloudGet(url string) (subject, error) {
	client := hcloud.NewClient(hcloud.WithEndpoint(url), hcloud.WithToken("token"))
	return func() error {
		action, _, err := client.Action.GetByID(context.Background(), 17)
		return found(err, action != nil && action.ID == 17)
	}, nil
}

func githubGet(url string) (subject, error) {
	client, err := github.NewClient(github.WithHTTPClient(&http.Client{}), github.WithAuthToken("token"), github.WithEnterpriseURLs(url, url))
	return func() error {
		deployment, _, err := client.Repositories.GetDeployment(context.Background(), "example", "site", 17)
		return found(err, deployment.GetID() == 17)
	}, err
}

func cloudflareGet(url string) (subject, error) {
	service := accounts.NewAccountService(option.WithBaseURL(url+"/"), option.WithAPIToken("token"))
	var params accounts.AccountGetParams
	params.AccountID.Value, params.AccountID.Present = "a17", true // the same as cloudflare.F, whose package takes minutes to compile
	return func() error {
		account, err := service.Get(context.Background(), params)
		return found(err, account != nil && account.ID == "a17")
	}, nil
}
