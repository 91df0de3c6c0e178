// Tracing shows the calls of the SDK as OpenTelemetry spans. It purges and waits for the transaction. Then it prints
// one span for everything, one per call of the SDK, and one per attempt on the wire.
//
//	tracing [-wait=false] [URI...]
//
// The spans are JSON on stdout, one per line. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES name the service in them.
// The fake service answers the first purge with 503, so that a retry is seen. With the fake service, URIs may be left
// out: the program then purges https://www.example.com/app.css.
//
// Exit codes:
//
//	0  done
//	1  failed or interrupted; the purge may have failed
//	2  wrong usage; nothing was sent
//	3  the purge succeeded, but its spans could not be printed
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("tracing", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) (err error) {
	set := program.Flags("tracing", source, s)
	wait := set.Bool("wait", true, "wait until the transaction has ended; -wait=false does not")
	if err := program.Parse(set, args); err != nil {
		return err
	}
	uris, err := program.Arguments(set.Args())
	switch {
	case err != nil:
		return err
	case len(uris) == 0 && program.Configured():
		return program.Misused("no URIs; type: tracing https://www.example.com/app.css; -h shows all flags")
	case len(uris) == 0:
		uris = []string{"https://www.example.com/app.css"}
	}

	exporter, err := stdouttrace.New(stdouttrace.WithWriter(s.Out)) // for other exporters, see README.md
	if err != nil {
		return err
	}
	provider, err := newProvider(ctx, sdktrace.WithBatcher(exporter))
	if err != nil {
		return err
	}
	defer func() {
		if unprinted := flush(ctx, provider); err == nil {
			err = program.Ended(1, unprinted)
		} else {
			err = errors.Join(err, unprinted)
		}
	}()

	httpClient := &http.Client{Transport: transport(http.DefaultTransport, provider)}
	service, err := program.Connect(s.Err, []webdelivery.Option{webdelivery.WithHTTPClient(httpClient)}, nil, failOnce)
	if err != nil {
		return err
	}
	defer service.Close()
	var progress []webdelivery.WaitOption
	if s.ErrTerminal {
		progress = append(progress, webdelivery.OnProgress(func(p webdelivery.Progress) {
			if p.Err != nil {
				fmt.Fprintf(s.Err, "%v; polling again\n", p.Err)
				return
			}
			fmt.Fprintf(s.Err, "%s, %d %% of the caches\n", p.Status, p.Percent)
		}))
	}
	return purge(ctx, provider.Tracer("tracing"), service.Client, uris, *wait, progress...)
}

// failOnce lets the fake service answer the first purge with 503.
func failOnce(srv *webdeliverytest.Server) {
	srv.Fail(webdeliverytest.FaultRule{
		Method: http.MethodPost, Path: "/cache/purge", Count: 1, Status: http.StatusServiceUnavailable,
	})
}

// newProvider creates a provider whose spans name this program, or the service that the environment names.
func newProvider(ctx context.Context, options ...sdktrace.TracerProviderOption) (*sdktrace.TracerProvider, error) {
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("tracing")), resource.WithFromEnv())
	if err != nil {
		return nil, program.Misused("%w", err)
	}
	return sdktrace.NewTracerProvider(append(options, sdktrace.WithResource(about))...), nil
}

// flush exports the spans that are left, also if the program was interrupted.
func flush(ctx context.Context, provider *sdktrace.TracerProvider) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(provider.ForceFlush(ctx), provider.Shutdown(ctx)) // Shutdown alone does not return the errors of the export
}

// purge submits a purge and waits for it. Both have a span, within one for everything.
func purge(ctx context.Context, tracer trace.Tracer, client *webdelivery.Client, uris []string, wait bool, options ...webdelivery.WaitOption) error {
	request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge}
	for _, uri := range uris {
		request.URIs = append(request.URIs, webdelivery.Exact(uri))
	}
	return spanned(ctx, tracer, "purge", func(ctx context.Context) error {
		var receipt *webdelivery.PurgeReceipt
		err := spanned(ctx, tracer, "Purge.Submit", func(ctx context.Context) (err error) {
			receipt, err = client.Purge.Submit(ctx, request)
			return err
		})
		if err != nil || !wait {
			return err
		}
		return spanned(ctx, tracer, "Purge.Wait", func(ctx context.Context) error {
			_, err := client.Purge.Wait(ctx, receipt.TransactionID, options...)
			return err
		})
	})
}
