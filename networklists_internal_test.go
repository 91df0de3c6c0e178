package webdelivery

import "github.com/webdelivery/webdelivery-go/internal/lists"

// Limited returns a client whose lists have so few entries that a test can fill one.
func (c *Client) Limited(list, call int) *Client {
	limited := *c
	limited.NetworkLists = &NetworkListsService{c.conn, c.Tasks, lists.Limits{List: list, Call: call}}
	return &limited
}
