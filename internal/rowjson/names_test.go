package rowjson_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

func TestNamesInEveryShape(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][][]string{
		`["a","b"]`:                                {{"a"}, {"b"}},
		`[{"name":"a"},{"name":"b"}]`:              {{"a"}, {"b"}},
		`{"groupings":[["a","b"],[]],"items":[1]}`: {{"a", "b"}, nil},
		`{"items":["a,b"],"total":1}`:              {{"a", "b"}},
		`{"Groupings":["x"],"items":[]}`:           {},
	} {
		items, wrong, err := rowjson.Names([]byte(body), "groupings")
		assert.Equal(t, want, items, body)
		assert.Empty(t, wrong)
		assert.NoError(t, err)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`null`:                         "in a shape that is not known",
		`{"names":["a"]}`:              "in a shape that is not known",
		`[7]`:                          "in a shape that is not known",
		`[""]`:                         "in a shape that is not known",
		`{"items":["a"],"total":2}`:    "with others behind it",
		`{"items":["a"],"next_uri":5}`: "with others behind it",
		`["a,b"]`:                      "with an item that is not one name",
		`[[]]`:                         "with an item that is not one name",
		`[{"name":"a","list":[]}]`:     "in a shape that is not known",
		`[{"name":"a","uri":"/config/networklists/1"}]`: "in a shape that is not known",
	} {
		items, wrong, _ := rowjson.Names([]byte(body), "dimensions")
		assert.Nil(t, items, body)
		assert.Contains(t, wrong, "of dimensions "+want, body)
	}
}
