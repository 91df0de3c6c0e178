package filters_test

import (
	"errors"
	"fmt"

	"github.com/webdelivery/webdelivery-go/filters"
)

func ExampleAnd() {
	expr := filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("client_browser", "Mozilla, like Gecko"))
	fmt.Println(expr)
	// Output: client_country_code==CN;client_browser!=Mozilla\, like Gecko
}

// A query reports the same problem before it sends a request.
func ExampleOr() {
	fmt.Println(filters.Or(filters.Eq("client_country_code", "CN"), filters.Eq("client_country_code", "DE")))

	err := filters.Or(filters.Eq("rule_id", "942100"), filters.Eq("rule id", "1")).Validate()
	var invalid *filters.InvalidError
	if errors.As(err, &invalid) {
		fmt.Println("invalid:", invalid.Filter)
		fmt.Println(invalid.Reason)
	}
	// Output:
	// client_country_code==CN,client_country_code==DE
	// invalid: rule id==1
	// the dimension contains white space or one of the characters = ! , ;
}

func ExampleParse() {
	expr, err := filters.Parse("client_country_code==CN,client_country_code==DE")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range expr.Filters() {
		fmt.Println(f.Dimension, f.Operator, f.Value)
	}

	_, err = filters.Parse("client_country_code==CN,event_action!=WARN;rule_id==1")
	var syntax *filters.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println("wrong at byte", syntax.Offset)
	}
	// Output:
	// client_country_code == CN
	// client_country_code == DE
	// wrong at byte 42
}
