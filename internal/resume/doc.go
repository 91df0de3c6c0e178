// Package resume continues an export of rows after its response broke, and yields each row exactly once. A request can
// only begin at a whole second, and rows of the same time may arrive in another order. So the package remembers the
// rows of the last two seconds, as checksums.
//
// It knows times, sums and numbers of rows. It must not know HTTP, or the content of a row.
// Entry points: [Run.All], [Source], [Position], [Replay.Take].
package resume
