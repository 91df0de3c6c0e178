// Package resume lets an export of rows go on after its response broke, with each row exactly once. It remembers the rows
// of the last two seconds, as sums, because a request can only begin at a whole second and rows of the same time may come
// in another order.
//
// It knows times, sums and numbers of rows. It must not know HTTP, or what a row holds.
//
// Entry points: [Run.All], [Source], [Position], [Replay.Take].
package resume
