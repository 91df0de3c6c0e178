package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// config is the content of the file of --config.
type config struct {
	Faults  []webdeliverytest.FaultRule
	Dialect webdeliverytest.Dialect
}

var cuts = map[string]webdeliverytest.Cut{
	"before-read":   webdeliverytest.CutBeforeRead,
	"after-read":    webdeliverytest.CutAfterRead,
	"after-execute": webdeliverytest.CutAfterExecute,
	"body":          webdeliverytest.CutBody,
	"chunked":       webdeliverytest.CutChunked,
}

// values reads durations and cuts from the texts that people write.
var values = json.JoinUnmarshalers(
	json.UnmarshalFunc(func(text []byte, d *time.Duration) (err error) {
		*d, err = cli.ParseDuration(strings.Trim(string(text), `"`))
		return err
	}),
	json.UnmarshalFunc(func(text []byte, cut *webdeliverytest.Cut) error {
		if *cut = cuts[strings.Trim(string(text), `"`)]; *cut == webdeliverytest.CutNone {
			return fmt.Errorf("%s is unknown; use before-read, after-read, after-execute, body or chunked", text)
		}
		return nil
	}),
)

// goName is what a Go program would like to see in front of an error of the fake.
var goName = regexp.MustCompile(`^(webdeliverytest: |testserver: )*(With|Fault(Rule)?\.)?`)

// readConfig reads the file, if there is one. It refuses unknown members and values, and its error names their place.
func readConfig(app *cli.App, name string) (c config, err error) {
	if name == "" {
		return c, nil
	}
	text, err := app.ReadFile(name)
	if err != nil {
		return c, err
	}
	err = json.Unmarshal(text, &c,
		json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true), json.WithUnmarshalers(values))
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		err = fmt.Errorf("%s: %w", wrong.JSONPointer, cmp.Or(wrong.Err, errors.New("a value of this type cannot be here")))
	}
	if err != nil {
		return c, cli.Misused("--config %s: %w; --help lists the members", name, err)
	}
	for i, rule := range c.Faults {
		if err := rule.Check(); err != nil {
			reason := goName.ReplaceAllString(err.Error(), "")
			return c, cli.Misused("--config %s: /faults/%d: %s; --help lists the members", name, i, reason)
		}
	}
	return c, nil
}
