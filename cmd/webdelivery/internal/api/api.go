// Package api has the command for any request to the service.
package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const help = `Send a request to the service, and print the body of the response as it is,
also that of an error. PATH is below the customer and the version, or a full
URL below them: credentials go nowhere else.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "api METHOD PATH", Short: "Send any request to the service", Long: help,
		Example: `  webdelivery api GET /tasks --query since=2026-11-20T00:00:00 | jq
  webdelivery api POST /config/networklists/42/entries -f entries.json`,
		Args: cobra.ExactArgs(2),
	}
	query := c.Flags().StringArray("query", nil, "add this `name=value` to the query, escaped; may be repeated")
	file := c.Flags().StringP("file", "f", "", "send the JSON in this `file`; - is standard input")
	headers := c.Flags().BoolP("headers", "i", false, "print the status and the headers first")
	c.RunE = func(c *cobra.Command, args []string) error {
		path := args[1]
		for _, pair := range *query {
			path = withQuery(path, pair)
		}
		var in any // no body
		if c.Flags().Changed("file") {
			text, err := app.ReadFile(*file)
			if err != nil {
				return err
			}
			in = json.RawMessage(text)
		}
		client, err := app.Connect()
		if err != nil {
			return err
		}
		var response webdelivery.Response
		var body json.RawMessage
		err = client.Do(webdelivery.ContextWithResponse(c.Context(), &response), strings.ToUpper(args[0]), path, in, &body)
		if refused, ok := errors.AsType[*webdelivery.Error](err); ok {
			body = refused.Body
		}
		if *headers && response.StatusCode != 0 {
			fmt.Fprintf(app.Out, "%d %s\r\n", response.StatusCode, http.StatusText(response.StatusCode))
			_ = response.Header.Write(app.Out) // Write tells
			fmt.Fprint(app.Out, "\r\n")
		}
		if webdelivery.OutcomeOf(err) == webdelivery.OutcomeUnknown {
			err = cli.Advise(err, "the service may have done it: look before you send it again")
		}
		_, failed := app.Out.Write(body)
		return errors.Join(err, failed)
	}
	return c
}

func withQuery(path, pair string) string {
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	name, value, _ := strings.Cut(pair, "=")
	return path + mark + url.QueryEscape(name) + "=" + url.QueryEscape(value)
}
