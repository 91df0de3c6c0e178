// Webdelivery is a command for a web-delivery management service. Start it with --help.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/api"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/doctor"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/emulator"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/events"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/exporter"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/lists"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/purge"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/report"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/stats"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/tasks"
)

var commands = []func(*cli.App) *cobra.Command{
	purge.Command, tasks.Command, stats.Command, events.Command, lists.Command,
	report.Command, exporter.Command, doctor.Command, emulator.Command, api.Command, man,
}

func main() { os.Exit(cli.Main(commands...)) }

// man writes the manual pages, for the packages of a release.
func man(*cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write manual pages into a folder", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			c.Root().DisableAutoGenTag = true
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "webdelivery " + webdelivery.Version}, args[0])
		},
	}
}
