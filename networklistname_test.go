package webdelivery_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func listNumber(n int) string { return fmt.Sprintf("%08d-1111-4111-8111-111111111111", n) }

// GetByName compares names byte for byte, whatever the type of the list. It ignores deprecated lists.
func TestGetByName(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for n := range 1100 { // more than a page
			f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(n), Name: fmt.Sprint("list ", n)})
		}
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(2001), Name: "office", Entries: []string{"192.0.2.1"}})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(2002), Name: "office", Deprecated: true})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(2003), Name: "Büro", Type: "GEO", Entries: []string{"DE"}})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(2004), Name: "old", Deprecated: true})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(2005), Name: "twin"})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(2006), Name: "twin", Type: "GEO"})
		for name, want := range map[string]*webdelivery.NetworkList{
			"office": {ID: listNumber(2001), List: []string{"192.0.2.1"}}, "Büro": {ID: listNumber(2003), List: []string{"DE"}},
			"Office": nil, "office ": nil, "offic": nil, "Bu\u0308ro": nil, "old": nil, "list 1100": nil,
		} {
			list, err := f.Client.NetworkLists.GetByName(f.Context(), name)
			if want == nil {
				require.ErrorIs(f, err, webdelivery.ErrNotFound, name)
				assert.ErrorContains(f, err, name)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Nil(f, list)
				continue
			}
			require.NoError(f, err)
			assert.Equal(f, want.ID, list.ID)
			assert.Equal(f, want.List, list.List)
			assert.Equal(f, name, list.Name)
		}
		_, err := f.Client.NetworkLists.GetByName(f.Context(), "twin")
		assert.EqualError(f, err, `webdelivery: 2 network lists have the name "twin": `+listNumber(2005)+", "+listNumber(2006))
		assert.NotErrorIs(f, err, webdelivery.ErrNotFound)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

		sent := len(f.Srv.Requests())
		_, err = f.Client.NetworkLists.GetByName(f.Context(), "")
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		assert.Len(f, f.Srv.Requests(), sent)
	})
}
