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
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
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
				sent, most := 0, 0 // a code comes at most so often
				client := clientOf(t, webdelivery.BasicAuth(fixture.Username, fixture.Password), func(*http.Request) *http.Response {
					if sent++; sent > most {
						return fixture.Response(http.StatusOK, []byte(good))
					}
					return fixture.Response(http.StatusOK, []byte(tt.body))
				})
				read := func(times int) (int, error) {
					sent, most = 0, times
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
				assert.Equal(t, http.StatusOK, refused.StatusCode)
				assert.Equal(t, tt.code, refused.Code)
				assert.Equal(t, tt.code == 503, refused.Is(webdelivery.ErrServer))
				assert.NotErrorIs(t, err, webdelivery.ErrBadResponse)
				assert.LessOrEqual(t, len(refused.Body), 64<<10)
				if tt.rows == 0 && !strings.Contains(tt.body, long) {
					assert.Equal(t, "under maintenance", refused.Description)
				}
				rows, err = read(1)
				if assert.Equal(t, tt.again, err == nil, "whether it is retried"); tt.again {
					assert.Equal(t, []int{2, 2}, []int{rows, sent})
				} else {
					assert.Equal(t, 1, sent)
				}
			})
		})
	}
}

// No operation takes a rejection for a success. If any response of an operation has a code of 400, whatever its
// status, the operation returns ErrBadRequest. A response to HEAD has no body and so no code.
func TestNoOperationOverhearsARefusal(t *testing.T) {
	t.Parallel()
	for _, op := range operations.All() {
		if op.Method == http.MethodHead {
			continue
		}
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			for _, fault := range refusalsByCode() {
				refused, most := 0, 20
				if op.Waits {
					most = 3 // polls, which are all the same
				}
				for nth := 0; nth < most && refused == nth; nth++ {
					inReliableService(t, fixture.Setup{}, func(f *fixture.Fixture) {
						use := prepare(f, operationOf{Operation: op})
						fault.Skip, fault.Count = nth, 1
						f.AddFault(fault)
						err := op.Run(f.Context(), f.Client, use)
						if f.Srv.FaultHits() > 0 {
							refused++
							assert.ErrorIs(f, err, webdelivery.ErrBadRequest, "status %d, %s, response %d", fault.Status, fault.Body, nth)
						}
					})
				}
				assert.GreaterOrEqual(t, refused, max(1, op.Before+op.Requests))
			}
		})
	}
}

func refusalsByCode() (faults []testserver.Fault) {
	and := [2]string{``, `,"id":"a","task_id":"a","items":[],"total":0`} // also if the rest looks like a success
	for i, status := range []int{http.StatusOK, http.StatusCreated} {
		for j, code := range []string{`400`, `"400"`} {
			faults = append(faults, testserver.Fault{Status: status, Body: `{"code":` + code + `,"description":"no"` + and[(i+j)%2] + `}`})
		}
	}
	return faults
}

// The one exception: the code of a transaction describes how it ended. Status returns it, and Wait returns an error
// of its own.
func TestTheCodeOfATransactionIsItsOwn(t *testing.T) {
	t.Parallel()
	inReliableService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.Srv.FailTransactions(1, "FAILED", "no such object", http.StatusBadRequest)
		id := transaction(f)
		_, err := f.Client.Purge.Wait(f.Context(), id)
		var ended *webdelivery.TransactionError
		require.ErrorAs(f, err, &ended)
		assert.NotErrorIs(f, err, webdelivery.ErrBadRequest)
		transaction, err := f.Client.Purge.Status(f.Context(), id)
		require.NoError(f, err)
		assert.Equal(f, http.StatusBadRequest, transaction.Code)
	})
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

var getTransaction = fixture.Listed("transaction", "Purge.Status")
