// Package resume delivers each row of an export exactly once, across broken responses and restarts, although rows may
// appear late. A request can only begin at a whole second, rows of the same time may come in another order, and nothing
// is known of a service's borders, so the package keeps checksums of the rows of the last seconds: two, and as many as a
// row may be late.
//
// The package must not depend on HTTP or the content of a row. Its entry points are [Run.All], [Source], [Position] and
// [Replay.Take].
package resume
