package suite_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A streamed response to a statistics query can contain a code at any of these places.
func TestEnvelopesInAStream(t *testing.T) {
	t.Parallel()
	const good = `{"columns":[{"name":"client_ip"}],"rows":[["192.0.2.1"],["192.0.2.2"]],"total_results":2}`
	long := strings.Repeat("x", 100<<10)
	tests := []struct {
		name, body string
		rows       int
		code       int // of the error; 0: no error
		again      bool
	}{
		{"alone", `{"code":503,"description":"under maintenance"}`, 0, 503, true},
		{"behind a long text", `{"note":"` + long + `","description":"under maintenance","code":503}`, 0, 503, true},
		{"with empty members of a result", `{"columns":null,"rows":null,"total_results":0,"description":"under maintenance","code":503}`, 0, 503, true},
		{"before a result", `{"code":503,"description":"under maintenance",` + good[1:], 0, 503, true},
		{"between", strings.Replace(good, `,"rows"`, `,"code":503,"description":"under maintenance","rows"`, 1), 0, 503, true},
		{"behind a result", good[:len(good)-1] + `,"code":503}`, 2, 503, false},
		{"with a secret", good[:len(good)-1] + `,"code":503,"description":"wrong: ` + fixture.Password + `"}`, 2, 503, false},
		{"final", `{"code":403,"description":"under maintenance"}`, 0, 403, false},

		{"a code of success", `{"code":200,` + good[1:], 2, 0, false},
		{"a word", `{"code":"E503",` + good[1:], 2, 0, false},
		{"an object", `{"code":{"code":503},` + good[1:], 2, 0, false},
		{"a code within", strings.Replace(good, `"columns"`, `"query":{"code":503},"columns"`, 1), 2, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent, codes := 0, 0 // the code comes in so many responses
				client := clientOf(t, webdelivery.BasicAuth(fixture.Username, fixture.Password), func(*http.Request) *http.Response {
					if sent++; sent > codes {
						return fixture.Response(http.StatusOK, []byte(good))
					}
					return fixture.Response(http.StatusOK, []byte(tt.body))
				})
				read := func(times int) (int, error) {
					sent, codes = 0, times
					rows, err := fixture.Gather(client.Stats.Events.All(t.Context(), lastHour(2)))
					return len(rows), err
				}

				rows, err := read(math.MaxInt)
				assert.Equal(t, tt.rows, rows)
				if tt.code == 0 {
					require.NoError(t, err)
					return
				}
				var refused *webdelivery.Error
				require.ErrorAs(t, err, &refused)
				assert.Equal(t, []int{http.StatusOK, tt.code}, []int{refused.StatusCode, refused.Code})
				assert.NotContains(t, refused.Description, fixture.Password)
				assert.NotErrorIs(t, err, webdelivery.ErrBadResponse)
				rows, err = read(1)
				assert.Equal(t, tt.again, err == nil, "whether it is retried")
				assert.Equal(t, tt.again, rows == 2 && sent == 2)
			})
		})
	}
}

// The code of an envelope can reject the credentials too: 401, and for purges and transactions also 403 (open point
// 6).
func TestEnvelopesThatRefuseTheCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op   fixture.Operation
		body string
		is   bool
	}{
		{fixture.GetTask, `{"code":401}`, true},
		{fixture.GetTask, `{"code":403}`, false},
		{getTransaction, `{"code":401}`, true},
		{getTransaction, `{"code":403}`, true},
		{fixture.Submit, `{"code":403}`, true},
	} {
		err := tt.op.Call(t.Context(), fixture.Always(t, []byte(tt.body)))
		assert.Equal(t, tt.is, errors.Is(err, webdelivery.ErrUnauthorized), "%v %s", tt.op.Path, tt.body)
	}
}

// It can say that a purge came too fast, too.
func TestEnvelopesOfAPurgeThatCameTooFast(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"code":429}`, `{"code":503}`} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: "/cache/purge", Status: http.StatusOK, Body: body, Count: 2})
			require.NoError(f, fixture.Submit.Call(f.Context(), f.Client), body)
			assert.Equal(f, 3, f.Requests(fixture.Submit))
		})
	}
}

var getTransaction = fixture.Listed("transaction", "Purge.Status")
