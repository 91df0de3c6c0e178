package filters_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/filters"
)

// The printed form of expressions, which Parse reads back: <dimension><operator><value>, joined by a comma for OR or a
// semicolon for AND. A backslash escapes both in a value (service document, section 4.2).
func TestPrintAndParse(t *testing.T) {
	t.Parallel()
	eq, ne := filters.Eq, filters.Ne
	for _, tt := range []struct {
		expr filters.Expr
		want string
	}{
		{eq("client_country_code", "CN"), "client_country_code==CN"},
		{ne("event_action", "WARN"), "event_action!=WARN"},
		{filters.And(eq("a", "1"), ne("b", "2")), "a==1;b!=2"},
		{filters.Or(eq("a", "1"), eq("a", "2"), eq("a", "3")), "a==1,a==2,a==3"},
		{filters.And(eq("a", "1")), "a==1"},
		{filters.Or(ne("a", "1")), "a!=1"},
		{eq("browser", "Mozilla/5.0 (X11; Linux, x86)"), `browser==Mozilla/5.0 (X11\; Linux\, x86)`},
		{filters.Or(eq("a", ","), eq("b", ";;")), `a==\,,b==\;\;`},
		{eq("a", ""), "a=="},
		{filters.And(eq("a", ""), eq("b", "")), "a==;b=="},
		{eq("path", `C:\temp`), `path==C:\temp`},
		{eq("path", `\\host\n`), `path==\\host\n`},
		{eq("a", "=b"), "a===b"},
		{ne("a", "=b"), "a!==b"},
		{eq("a", "b!=c==d"), "a==b!=c==d"},
		{eq("a", "!"), "a==!"},
		{eq("a", " blank\n"), "a== blank\n"},
		{eq("a", "\xff\x00"), "a==\xff\x00"},
		{eq("größe", "ü"), "größe==ü"},
	} {
		require.NoError(t, tt.expr.Validate(), tt.want)
		assert.Equal(t, tt.want, tt.expr.String())
		parsed, err := filters.Parse(tt.want)
		require.NoError(t, err, tt.want)
		assert.True(t, same(tt.expr, parsed), "%#v", parsed)
	}
}

// same compares as users do: expressions with the same printed form are equal.
func same(a, b filters.Expr) bool { return a == b }

// Invalid filters, and a part of the error that names the cause.
func TestWhatCannotBeSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expr filters.Expr
		says string
	}{
		{filters.Eq("", "x"), "dimension is empty"},
		{filters.Eq("a==b", "x"), "a==b"},
		{filters.Eq("a!", "x"), "a!"},
		{filters.Ne("a,b", "x"), "a,b"},
		{filters.Eq("a b", "x"), "a b"},
		{filters.Eq("a\n", "x"), `a\n`},
		{filters.Filter{Dimension: "a", Value: "x"}, "operator"},
		{filters.Filter{Dimension: "a", Operator: ">=", Value: "x"}, "operator"},
		{filters.Eq("a", `x\,y`), `x\\,y`},
		{filters.Eq("a", `x\;y`), `x\\;y`},
		{filters.Eq("b", `C:\`), `"b" == "C:\\"`},
		{filters.Or(filters.Eq("a", "1"), filters.Ne("b", `C:\`)), `"b" != "C:\\"`},
		{filters.And(filters.Eq("b", `x\`), filters.Eq("a", "1")), `"b" == "x\\"`},
		{filters.Or(filters.Eq("a b", "1"), filters.Eq("c d", "2"), filters.Eq("e", "3")), `"a b" == "1"`}, // the first
		{filters.And(), "no filters"},
		{filters.Or(), "no filters"},
	} {
		err := tt.expr.Validate()
		var invalid *filters.InvalidError
		require.ErrorAs(t, err, &invalid, tt.says)
		assert.Contains(t, err.Error(), tt.says)
	}
}

// The position of a syntax error, in bytes.
func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for text, offset := range map[string]int{
		"": 0, "a": 0, "a=b": 0, "==b": 0, "a b==c": 0, "a==b;": 5, "a==b;;c==d": 5, ",a==b": 0, "ü==1;b": 6,
		"a==b;c==d,e==f": 9, "a==b,c==d;e==f": 9,
		`a==\\,b`: 0, `a==C:\`: 0, `a==1;b==C:\`: 5, `a==b;c==\\;d==e`: 5, `a\,b==c`: 0,
	} {
		expr, err := filters.Parse(text)
		var syntax *filters.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		assert.Nil(t, expr, text)
		assert.Equal(t, offset, syntax.Offset, text)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	a, b := filters.Eq("a", "x,y"), filters.Ne("b", ";")
	assert.Equal(t, []filters.Filter{a, b}, filters.And(a, b).Filters())
	assert.Equal(t, []filters.Filter{a, b}, filters.Or(a, b).Filters())
	assert.Equal(t, []filters.Filter{a}, a.Filters())
	assert.Empty(t, filters.And().Filters())
	assert.NotEqual(t, filters.And(a, b), filters.Or(a, b))
	parts := []filters.Filter{a, b}
	expr := filters.And(parts...)
	parts[0] = b
	assert.Equal(t, filters.And(a, b), expr, "later changes of the caller's slice have no effect")
}

// Parse never panics. If it accepts a text, the expression prints the same bytes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a==1;b!=2", `a==\,,b==\;`, `a==\\,`, "a===b", "==", ";", `\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		expr, err := filters.Parse(s)
		if err != nil {
			return
		}
		require.NoError(t, expr.Validate())
		require.Equal(t, s, expr.String())
		require.Len(t, expr.Filters(), 1+strings.Count(strings.NewReplacer(`\,`, "", `\;`, "").Replace(s), ",")+
			strings.Count(strings.NewReplacer(`\,`, "", `\;`, "").Replace(s), ";"))
	})
}
