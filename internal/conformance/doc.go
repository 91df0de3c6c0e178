// Package conformance states the rules of the service document (docs/service-interface.md) one by one, and looks whether a
// service keeps them.
//
// It speaks plain net/http and knows nothing of the SDK, so that both can be wrong only independently of each other. Its
// test runs the rules against the fake of internal/testserver, or against the service of a user (docs/conformance.md).
//
// A rule is stated by the document, and then a service that breaks it differs, or it is left open, and then what the
// service does is told and nothing is held against it. A service is read only, but for one session that is created, unless
// [Target] names what may be changed.
package conformance
