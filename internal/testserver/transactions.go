package testserver

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// firstTransaction is above 2^53, and all ids are odd. A client that stores an id in a float64 changes each of them.
const firstTransaction int64 = 1<<53 + 1

// transaction is a purge in progress. Only the clock decides how far it is.
type transaction struct {
	begin time.Time
	ending
}

// ending is the final state of a transaction.
type ending struct {
	status, description string
	code                int
}

// FailTransactions makes the next n transactions end with this transaction_status, transaction_status_description and
// code (0 means 200). The HTTP status stays 200.
func (s *Server) FailTransactions(n int, status, description string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failure := ending{status: status, description: description, code: cmp.Or(code, http.StatusOK)}
	s.failures = append(s.failures, slices.Repeat([]ending{failure}, n)...)
}

func (s *Server) newTransaction(now time.Time) (id int64) {
	id = firstTransaction + 2*s.transactionNumber
	s.transactionNumber++
	if s.cfg.SmallIDs {
		id = s.transactionNumber
	}
	t := &transaction{begin: now, ending: ending{
		status: s.dialect.Final, description: "all caches have answered", code: http.StatusOK,
	}}
	if len(s.failures) > 0 {
		t.ending = s.failures[0]
		s.failures = s.failures[1:]
	}
	s.transactions[id] = t
	return id
}

// getTransaction is GET /transactions/{transaction_id} (service document, sections 2.3 and 4.4).
func getTransaction(c *call) (response, error) {
	text := c.vars["transaction_id"]
	id, err := strconv.ParseUint(text, 10, 63)
	if errors.Is(err, strconv.ErrSyntax) {
		return response{}, refuse(http.StatusBadRequest, "transaction id %q is not a number", text)
	}
	t := c.s.transactions[int64(id)]
	if err != nil || t == nil {
		return response{}, refuse(http.StatusNotFound, "transaction %s does not exist", text)
	}
	duration := c.s.cfg.PurgeDuration
	end := t.begin.Add(max(0, duration))
	state, endTS, received := t.ending, end.Unix(), 100
	if c.now.Before(end) {
		state = ending{status: "PENDING", description: "waiting for caches to answer", code: http.StatusOK}
		endTS, received = -1, percent(c.now.Sub(t.begin), duration)
	}
	return jsonResponse(http.StatusOK, map[string]any{
		"code": state.code, "description": "transaction status", "transaction_id": id,
		"transaction_response": map[string]any{
			"begin_ts": t.begin.Unix(), "end_ts": endTS, "percent_received_responses": received,
			"transaction_status": state.status, "transaction_status_description": state.description,
		},
	}), nil
}
