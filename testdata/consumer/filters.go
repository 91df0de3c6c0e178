package main

import (
	"errors"
	"fmt"

	"github.com/webdelivery/webdelivery-go/filters"
)

// expressions makes filters, reads them and takes them apart.
func expressions(text string) ([]string, error) {
	var expr filters.Expr
	expr, err := filters.Parse(text)
	if err != nil {
		return nil, err
	}
	if err := expr.Validate(); err != nil {
		return nil, err
	}
	parts := []string{expr.String()}
	for _, part := range expr.Filters() {
		var operator filters.Operator = part.Operator
		switch operator {
		case filters.Equal, filters.NotEqual:
			parts = append(parts, part.Dimension+" "+string(operator)+" "+part.Value)
		}
	}
	var single filters.Filter = filters.Filter{Dimension: "a", Operator: filters.Equal, Value: "1"}
	if err := single.Validate(); err != nil {
		return nil, err
	}
	parts = append(parts, single.String(), fmt.Sprint(len(single.Filters())))
	for _, joined := range []filters.Expr{
		filters.And(single, filters.Ne("b", "2")), filters.Or(single, filters.Eq("a", "3")),
	} {
		parts = append(parts, joined.String())
	}
	supplied, customer, err := filters.ParseEcho("(a==1);customer==acme")
	return append(parts, fmt.Sprint(supplied), customer), err
}

// wrong tells what is wrong with a filter.
func wrong(err error) string {
	var (
		syntax  *filters.SyntaxError
		invalid *filters.InvalidError
	)
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprint(syntax.Error(), syntax.Offset, syntax.Reason)
	case errors.As(err, &invalid):
		return fmt.Sprint(invalid.Error(), invalid.Filter, invalid.Reason)
	}
	return ""
}
