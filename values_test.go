package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// If T cannot be scanned into, Scan returns an error before it requests the rows, so nothing is sent.
func TestScanRefusesBeforeItAsks(t *testing.T) {
	t.Parallel()
	type hidden struct {
		a int `stats:"a"` //nolint:unused // that it cannot be set is what is tested
	}
	type strange struct {
		Good int         `stats:"a"`
		A    map[int]int `stats:"b"`
	}
	type Shown struct {
		A int `stats:"a"`
	}
	type embedded struct{ *Shown }
	type untagged struct{ A int }
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		rows := f.Client.Stats.Events.All(f.Context(), fixture.ADay)
		const unexported = ": it is not exported, or in an embedded pointer; embed the struct by value"
		for want, err := range map[string]error{
			"int is not a struct with stats tags":                                 scanError[int](rows),
			"webdelivery_test.untagged is not a struct with stats tags":           scanError[untagged](rows),
			"*webdelivery_test.strange is not a struct with stats tags":           scanError[*strange](rows),
			"cannot set field a of webdelivery_test.hidden" + unexported:          scanError[hidden](rows),
			"cannot set field A of webdelivery_test.embedded" + unexported:        scanError[embedded](rows),
			"cannot read into field A of webdelivery_test.strange, a map[int]int": scanError[strange](rows),
			"cannot read into field A of struct { A []string \"stats:\\\"a\\\"\" }, a []string": scanError[struct {
				A []string `stats:"a"`
			}](rows),
		} {
			var invalid *webdelivery.ValidationError
			require.ErrorAs(f, err, &invalid, want)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
			assert.Equal(f, webdelivery.ValidationError{Field: "Scan", Reason: want}, *invalid)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		}
		assert.Empty(f, f.Srv.Requests())
	})
}

func scanError[T any](rows iter.Seq2[webdelivery.Row, error]) error {
	values, err := webdelivery.Collect(webdelivery.Scan[T](rows))
	if len(values) > 0 {
		return errors.New("Scan yields a value")
	}
	return err
}

// Collect returns the rows before an error together with it, and its rows stay valid.
func TestCollect(t *testing.T) {
	t.Parallel()
	numbers := func(items int, err error) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range items {
				if !yield(i, nil) {
					return
				}
			}
			if err != nil {
				yield(99, err)
			}
		}
	}
	for _, tt := range []struct {
		items int
		err   error
		want  []int
	}{{3, nil, []int{0, 1, 2}}, {2, assert.AnError, []int{0, 1}}, {0, assert.AnError, nil}, {0, nil, nil}} {
		got, err := webdelivery.Collect(numbers(tt.items, tt.err))
		assert.Equal(t, tt.want, got)
		assert.Equal(t, tt.err, err)
	}

	client := fixture.Always(t, []byte(resultOf([]string{"a"}, `["x"]`, `["y"]`, `["z"]`)))
	rows, err := webdelivery.Collect(client.Stats.Events.All(t.Context(), fixture.FirstRows))
	require.NoError(t, err)
	assert.Equal(t, `[["x"] ["y"] ["z"]]`, fmt.Sprint(rows), "each row has its own values")
	rows, err = webdelivery.Collect(fixture.Always(t, []byte(resultOf([]string{"a"}, `["x"]`, `[]`))).Stats.Events.All(t.Context(), fixture.FirstRows))
	require.ErrorIs(t, err, webdelivery.ErrBadResponse)
	assert.Equal(t, `[["x"]]`, fmt.Sprint(rows))
}

// A top-K query without dimensions and metrics requests hits and the dimension of its category, if the service
// document names one.
func TestDefaultsOfTopK(t *testing.T) {
	t.Parallel()
	type ask = func(context.Context, *webdelivery.StatsService) error
	waf := func(c webdelivery.WAFCategory) ask {
		return func(ctx context.Context, s *webdelivery.StatsService) error {
			q := webdelivery.WAFTopKQuery{Start: spanStart, End: spanEnd}
			_, err := s.WAFTopK(c).Query(ctx, q)
			_, err2 := collect(s.WAFTopK(c).All(ctx, q))
			_, err3 := collect(s.WAFTopK(c).All(ctx, q))
			return errors.Join(err, err2, err3)
		}
	}
	shaping := func(c webdelivery.TrafficShapingCategory) ask {
		return func(ctx context.Context, s *webdelivery.StatsService) error {
			q := webdelivery.TrafficShapingTopKQuery{Start: spanStart, End: spanEnd, SortBy: []webdelivery.Sort{webdelivery.Desc("hits")}}
			_, err := s.TrafficShapingTopK(c).Query(ctx, q)
			_, err2 := collect(s.TrafficShapingTopK(c).All(ctx, q))
			_, err3 := collect(s.TrafficShapingTopK(c).All(ctx, q))
			return errors.Join(err, err2, err3)
		}
	}
	for _, tt := range []struct {
		name string
		ask  ask
		want string // "": an error
	}{
		{"waf browser", waf(webdelivery.WAFByBrowser), "client_browser"},
		{"waf clientip", waf(webdelivery.WAFByClientIP), "client_ip"},
		{"waf country", waf(webdelivery.WAFByCountry), "client_country_code"},
		{"waf ruleid", waf(webdelivery.WAFByRuleID), "rule_id"},
		{"waf severity", waf(webdelivery.WAFBySeverity), "event_severity"},
		{"waf requestpath", waf(webdelivery.WAFByRequestPath), ""},
		{"shaping browser", shaping(webdelivery.TrafficShapingByBrowser), "client_browser"},
		{"shaping clientip", shaping(webdelivery.TrafficShapingByClientIP), "client_ip"},
		{"shaping country", shaping(webdelivery.TrafficShapingByCountry), "client_country_code"},
		{"shaping ratelimitclientip", shaping(webdelivery.TrafficShapingByRateLimitClientIP), ""},
		{"shaping ratelimitcountry", shaping(webdelivery.TrafficShapingByRateLimitCountry), ""},
		{"shaping requestpath", shaping(webdelivery.TrafficShapingByRequestPath), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
				err := tt.ask(f.Context(), f.Client.Stats)
				if tt.want == "" {
					var invalid *webdelivery.ValidationError
					require.ErrorAs(f, err, &invalid)
					assert.Equal(f, "dimensions", invalid.Field)
					require.ErrorContains(f, err, "invalid dimensions: must be set, because the dimension of this category is not documented; ask Dimensions for the names")
					assert.Empty(f, f.Srv.Requests())
					return
				}
				require.NoError(f, err)
				assert.Len(f, f.Srv.Requests(), 3)
				for _, r := range f.Srv.Requests() {
					values, err := url.ParseQuery(r.RawQuery)
					require.NoError(f, err)
					assert.Equal(f, []string{tt.want}, values["dimensions"])
					assert.Equal(f, []string{"hits"}, values["metrics"])
				}
			})
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
		_, err := f.Client.Stats.WAFTopK(webdelivery.WAFByRequestPath).Query(f.Context(), webdelivery.WAFTopKQuery{
			Dimensions: []string{"request_path"}, Start: spanStart, End: spanEnd,
		})
		require.NoError(f, err, "hits is the metric of every category")
	})
}
