package webdelivery_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// allSentinels are the sentinels by their names, which the code does not know.
var allSentinels = map[string]error{
	"ErrBadReply": webdelivery.ErrBadReply, "ErrBadRequest": webdelivery.ErrBadRequest, "ErrForbidden": webdelivery.ErrForbidden,
	"ErrInvalid": webdelivery.ErrInvalid, "ErrNotFound": webdelivery.ErrNotFound, "ErrPlanRefused": webdelivery.ErrPlanRefused,
	"ErrPlanStale": webdelivery.ErrPlanStale, "ErrQueueClosed": webdelivery.ErrQueueClosed,
	"ErrRateLimited": webdelivery.ErrRateLimited, "ErrRedirect": webdelivery.ErrRedirect,
	"ErrRefusedTogether": webdelivery.ErrRefusedTogether, "ErrResponseTooLarge": webdelivery.ErrResponseTooLarge,
	"ErrServer":       webdelivery.ErrServer,
	"ErrUnauthorized": webdelivery.ErrUnauthorized,
}

// typesOfOneOutcome are the error types whose every error has the same outcome.
var typesOfOneOutcome = map[string]error{
	"*webdelivery.ValidationError": &webdelivery.ValidationError{}, "*webdelivery.TaskError": &webdelivery.TaskError{},
	"*webdelivery.TransactionError": &webdelivery.TransactionError{}, "*webdelivery.EntriesLeftError": &webdelivery.EntriesLeftError{},
	"*webdelivery.AmbiguousNameError": &webdelivery.AmbiguousNameError{}, "*webdelivery.PlanError": &webdelivery.PlanError{},
	"*webdelivery.PaginationError": &webdelivery.PaginationError{},
	"*webdelivery.IncompleteError": &webdelivery.IncompleteError{}, "*webdelivery.ScanError": &webdelivery.ScanError{},
}

// docs/errors.md has every sentinel with its text, and every error type with its outcome.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	surface := readPage(t, "api/current.txt")
	var sentinels, types []string
	for _, found := range regexp.MustCompile(`(?m)^pkg webdelivery, var (Err\w+) error$`).FindAllStringSubmatch(surface, -1) {
		sentinels = append(sentinels, found[1])
	}
	for _, found := range regexp.MustCompile(`(?m)^pkg (\w+), method \((\*?)(\w+)\) Error\(\) string$`).FindAllStringSubmatch(surface, -1) {
		types = append(types, found[2]+found[1]+"."+found[3])
	}
	page := readPage(t, "docs/errors.md")

	rows := tableRows(page, "Sentinel")
	assert.ElementsMatch(t, sentinels, firstCells(rows))
	for _, row := range rows {
		sentinel := allSentinels[row[0]]
		require.Error(t, sentinel, "allSentinels lacks %s", row[0])
		assert.Equal(t, sentinel.Error(), row[1], row[0])
	}

	sentinels = nil
	for _, found := range regexp.MustCompile(`(?m)^pkg redisqueue, var (Err\w+) error$`).FindAllStringSubmatch(surface, -1) {
		sentinels = append(sentinels, found[1])
	}
	assert.ElementsMatch(t, sentinels, firstCells(tableRows(page, "Sentinel of redisqueue"))) // redisqueue tests their texts

	rows = tableRows(page, "Type")
	assert.ElementsMatch(t, types, firstCells(rows))
	for _, row := range rows {
		if err := typesOfOneOutcome[row[0]]; err != nil {
			assert.True(t, strings.HasPrefix(row[2], webdelivery.OutcomeOf(err).String()), "%s: %s", row[0], row[2])
		}
		assert.Equal(t, strings.HasPrefix(row[0], "*filters."), row[2] == "no call was made", row[0])
	}
}

// tableRows are the rows of the tables of a page whose first column has this title. Cells are without their backticks.
func tableRows(page, title string) (rows [][]string) {
	inTable := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i, cell := range cells {
			cells[i] = strings.Trim(cell, " `")
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case cells[0] == title:
			inTable = true
		case inTable && !strings.HasPrefix(line, "|--"):
			rows = append(rows, cells)
		}
	}
	return rows
}

func firstCells(rows [][]string) []string {
	var cells []string
	for _, row := range rows {
		cells = append(cells, row[0])
	}
	return slices.Clip(cells)
}
