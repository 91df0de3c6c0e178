package emulator

import (
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// exports returns lines for a shell that make the other commands work with the service, whatever was set before.
func exports(srv *webdeliverytest.Server, d webdeliverytest.Dialect) string {
	fields := conformance.Fits([]conformance.Spelling{
		{Field: "TasksPrefix", Value: d.TasksPrefix},
		{Field: "StartTimeParam", Value: d.StartTimeParam},
		{Field: "EntryKey", Value: d.EntryKey},
		{Field: "EntryDeletePath", Value: d.EntryDeletePath},
		{Field: "BatchDeletionMethod", Value: d.BatchDeletionMethod},
	})
	export := func(name, value string) string { return "export WEBDELIVERY_" + name + "=" + quote(value) + "\n" }
	return export("BASE_URL", srv.URL) + export("CUSTOMER", srv.Customer) + export("USERNAME", srv.Username) +
		export("PASSWORD", srv.Password) + export("PASSWORD_FILE", "") + export("AUTH", "basic") +
		export("DIALECT", fields)
}

// quote returns a text as one word of a shell command.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
