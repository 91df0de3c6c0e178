package webdelivery_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// A page that can be read in more than one way is refused: a reader that picks one of them may lose items.
func TestPagesThatAreAmbiguous(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{
		`{"items":[{"id":"a"}],"items":[]}`:                                 "items comes twice",
		`{"items":[{"id":"a"}],"ITEMS":[]}`:                                 "items comes twice",
		`{"items":[{"id":"a"}],"items":null}`:                               "items comes twice",
		`{"it\u0065ms":[{"id":"a"}],"items":[]}`:                            "items comes twice",
		`{"item` + "\u017f" + `":[{"id":"a"}],"items":[]}`:                  "items comes twice", // encoding/json takes the long s for an s
		`{"tasks":[{"id":"a"}],"Tasks":[{"id":"a"}]}`:                       "tasks comes twice",
		`{"items":[{"id":"a"}],"total":25,"has_more":true,"total":1}`:       "total comes twice",
		`{"items":[{"id":"a"}],"has_more":true,"Has_More":false}`:           "has_more comes twice",
		`{"items":[{"id":"a"}],"next_uri":"/tasks?page=2","next_uri":null}`: "next_uri comes twice",
		`{"page_count":3,"items":[{"id":"a"}],"page_count":1}`:              "page_count comes twice",
		`{"page_index":1,"items":[{"id":"a"}],"page_index":1}`:              "page_index comes twice",
		`{"items":[{"id":"a"}],"tasks":[{"id":"b"}]}`:                       "both items and tasks",
		`{"items":[{"id":"a"}],"tasks":[{"id":"a"}]}`:                       "both items and tasks",
		`{"items":[],"tasks":[{"id":"a"}]}`:                                 "both items and tasks",
		`{"items":[{"id":"a"}],"tasks":[]}`:                                 "both items and tasks",
	} {
		for name, reader := range readers() {
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				ids, err := gather(reader.read(t.Context(), always(t, []byte(body)), paging{}))
				require.ErrorIs(t, err, webdelivery.ErrBadReply)
				require.ErrorContains(t, err, says)
				assert.Empty(t, ids)
			})
		}
	}
	// These are not: the members of items have names of their own, and null is no list of items.
	for _, body := range []string{
		`{"items":[{"id":"a","uri":"/x","total":[{"items":"a,\"items\":"}]}],"uri":"/tasks","note":"\\\",\"items\":[","has_more":false}`,
		`{"extra":{"items":[1],"items":[2]},"items":[{"id":"a"}],"more":[{"items":1},"items","items"],"has_more":false}`,
		`{"items":null,"tasks":[{"id":"a"}],"has_more":false}`,
		`{"items":[{"id":"a"}],"tasks":null,"has_more":false}`,
		` {"tasks" : [ {"id" : "a"} ] , "note":"items", "note":"items" , "has_more" : false }`,
	} {
		for name, reader := range readers() {
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				ids, err := gather(reader.read(t.Context(), always(t, []byte(body)), paging{}))
				require.NoError(t, err)
				assert.Equal(t, []string{"a"}, ids)
			})
		}
	}
}
