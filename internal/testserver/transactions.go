package testserver

import (
	"net/http"
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
	setDefault(&code, http.StatusOK)
	for range n {
		s.failures = append(s.failures, ending{status: status, description: description, code: code})
	}
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

type transactionJSON struct {
	Code          int                     `json:"code"`
	Description   string                  `json:"description"`
	TransactionID int64                   `json:"transaction_id"`
	Response      transactionResponseJSON `json:"transaction_response"`
}

type transactionResponseJSON struct {
	BeginTS     int64  `json:"begin_ts"`
	EndTS       int64  `json:"end_ts"`
	Percent     int    `json:"percent_received_responses"`
	Status      string `json:"transaction_status"`
	Description string `json:"transaction_status_description"`
}

// getTransaction is GET /transactions/{transaction_id} (service document, sections 2.3 and 4.4).
func getTransaction(c *call) (response, error) {
	text := c.vars["transaction_id"]
	if !isNumber(text) {
		return response{}, refuse(http.StatusBadRequest, "transaction id %q is not a number", text)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	t := c.s.transactions[id]
	if err != nil || t == nil {
		return response{}, refuse(http.StatusNotFound, "transaction %s does not exist", text)
	}
	return jsonResponse(http.StatusOK, t.describe(id, c.now, c.s.cfg.PurgeDuration)), nil
}

func (t *transaction) describe(id int64, now time.Time, duration time.Duration) transactionJSON {
	end := t.begin.Add(max(0, duration))
	out := transactionJSON{
		Code: t.code, Description: "transaction status", TransactionID: id, Response: transactionResponseJSON{
			BeginTS: t.begin.Unix(), EndTS: end.Unix(), Percent: 100, Status: t.status, Description: t.description,
		},
	}
	if now.Before(end) {
		out.Code, out.Response.EndTS, out.Response.Percent = http.StatusOK, -1, percent(now.Sub(t.begin), duration)
		out.Response.Status, out.Response.Description = "PENDING", "waiting for caches to answer"
	}
	return out
}

func isNumber(text string) bool {
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
	}
	return text != ""
}
