// Package conformance states the rules of the service document one by one, and checks
// whether a service follows them.
//
// It uses plain net/http and does not import the SDK, so the two cannot share a mistake. Its test runs the rules
// against the fake of internal/testserver, or against a user's service (docs/internals/conformance.md).
//
// The document either states a rule or leaves it open. A service that breaks a stated rule differs. For an open rule,
// the report shows what the service does, and no behavior is wrong. The suite only reads, and creates one session. It
// changes only what [Target] names.
package conformance
