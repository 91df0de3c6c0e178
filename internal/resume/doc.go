// Package resume continues an export of rows after a broken response, and delivers each row exactly once. A request can
// only begin at a whole second, and rows of the same time may arrive in another order, so the package keeps checksums
// of the rows of the last two seconds.
//
// The package must not depend on HTTP or the content of a row. Its entry points are [Run.All], [Source], [Position] and
// [Replay.Take].
package resume
