// Topten prints the ten countries whose clients had the most hits of the web application firewall yesterday (UTC).
// Run it with: go run ./examples/topten
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

type group struct {
	Country *string `stats:"client_country_code"` // nil if the service does not know it
	Hits    int64   `stats:"hits"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	query := webdelivery.TopKQuery{Start: today.AddDate(0, 0, -1), End: today}
	rows := client.Stats.WAFTopK(webdelivery.WAFByCountry).All(ctx, query)
	groups, err := webdelivery.Collect(webdelivery.Scan[group](rows))
	if err != nil {
		return err
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(b.Hits, a.Hits) }) // a WAF top-K takes no SortBy
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tCOUNTRY\tHITS\t")
	for i, g := range groups[:min(10, len(groups))] {
		country := "unknown"
		if g.Country != nil {
			country = *g.Country
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t\n", i+1, country, g.Hits)
	}
	return table.Flush()
}
