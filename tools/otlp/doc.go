// Package otlp tests the command against the receiver of the OpenTelemetry collector. It is a module of its own because
// the collector takes minutes to build; .ci/run runs it, and make test does not.
package otlp
