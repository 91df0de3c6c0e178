package feed_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/webdelivery/webdelivery-go/feed"
)

// Entries go to NetworkLists.Plan. Places say where a wrong one comes from.
func ExampleReader() {
	var feeds feed.Reader
	text := "# botnets\n\n  192.0.2.1\n198.51.100.0/24 # since Monday\n"
	if err := feeds.Parse(context.Background(), "botnets.txt", "", strings.NewReader(text)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(feeds.Entries, feeds.Places)
	// Output: [192.0.2.1 198.51.100.0/24] [botnets.txt:3 botnets.txt:4]
}
