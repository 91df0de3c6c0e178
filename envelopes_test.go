package webdelivery_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// The stages at which a code stands in a response to a statistics query that is streamed.
func TestEnvelopesInAStream(t *testing.T) {
	t.Parallel()
	const good = `{"columns":[{"name":"client_ip"}],"rows":[["192.0.2.1"],["192.0.2.2"]],"total_results":2}`
	long := strings.Repeat("x", 100<<10)
	tests := []struct {
		name, body string
		rows       int
		code       int // of the error; 0: there is none
		again      bool
	}{
		{"alone", `{"code":503,"description":"under maintenance"}`, 0, 503, true},
		{"behind a long text", `{"note":"` + long + `","description":"under maintenance","code":503}`, 0, 503, true},
		{"with empty members of a result", `{"columns":null,"rows":null,"total_results":0,"description":"under maintenance","code":503}`, 0, 503, true},
		{"before a result", `{"code":503,"description":"under maintenance",` + good[1:], 0, 503, true},
		{"between", strings.Replace(good, `,"rows"`, `,"code":503,"description":"under maintenance","rows"`, 1), 0, 503, true},
		{"behind a result", good[:len(good)-1] + `,"code":503}`, 2, 503, false},
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
				stays := true
				sent := 0
				transport := roundTripper(func(*http.Request) (*http.Response, error) {
					if sent++; sent > 1 && !stays {
						return response(http.StatusOK, []byte(good)), nil
					}
					return response(http.StatusOK, []byte(tt.body)), nil
				})
				client, err := webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password),
					webdelivery.WithHTTPClient(&http.Client{Transport: transport}))
				require.NoError(t, err)
				read := func() (int, error) {
					sent = 0
					rows, err := gather(client.Stats.Events.Rows(t.Context(), lastHour(2)))
					return len(rows), err
				}

				rows, err := read()
				assert.Equal(t, tt.rows, rows)
				if tt.code == 0 {
					require.NoError(t, err)
					return
				}
				var refused *webdelivery.Error
				require.ErrorAs(t, err, &refused)
				assert.Equal(t, http.StatusOK, refused.StatusCode)
				assert.Equal(t, tt.code, refused.Code)
				assert.Equal(t, tt.code == 503, refused.Is(webdelivery.ErrServer))
				assert.NotErrorIs(t, err, webdelivery.ErrBadReply)
				assert.LessOrEqual(t, len(refused.Body), 64<<10)
				if tt.rows == 0 && !strings.Contains(tt.body, long) {
					assert.Equal(t, "under maintenance", refused.Description)
				}
				stays = false
				rows, err = read()
				if tt.again {
					require.NoError(t, err, "it is retried")
					assert.Equal(t, 2, rows)
					assert.Equal(t, 2, sent)
				} else {
					require.Error(t, err, "it is not retried")
					assert.Equal(t, 1, sent)
				}
			})
		})
	}
}

// The code in the body of a refusal by status is kept too, and the graver of the two counts, whatever is asked.
func TestTheCodeOfARefusalIsKept(t *testing.T) {
	t.Parallel()
	for i, op := range everyStep(1) {
		if strings.HasSuffix(op.method, ".Head") {
			continue
		}
		t.Run(fmt.Sprint(i, " ", op.method), func(t *testing.T) {
			t.Parallel()
			err := runAlone(t, op, roundTripper(func(*http.Request) (*http.Response, error) {
				return response(http.StatusBadRequest, []byte(`{"code":404,"description":"no such thing"}`)), nil
			}))
			var refused *webdelivery.Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, http.StatusBadRequest, refused.StatusCode)
			assert.Equal(t, 404, refused.Code)
			assert.ErrorIs(t, err, webdelivery.ErrNotFound)
			if op.method == "SessionsService.Create" {
				assert.Equal(t, "Not Found", refused.Description, "what a login says may hold a session")
			} else {
				assert.Equal(t, "no such thing", refused.Description)
			}
		})
	}
}
