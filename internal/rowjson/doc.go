// Package rowjson reads the response to a statistics query: its rows, without an allocation for each of them, and the
// members beside the rows. A row stays the bytes in which it arrived, with the place of each value in them. A value is
// decoded only when it is used.
//
// The package knows the shape of the response and what its values mean. It must not know HTTP, requests, or the public
// types of the SDK. Its entry points are [NewReader] and [Reader.Next], [Store], [Fields.Target], which writes rows
// into structs, and [Names], which reads lists of dimensions.
package rowjson
