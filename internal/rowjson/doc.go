// Package rowjson reads the response to a statistics query: the rows, without an allocation for each, and the members
// besides them. A row is kept as the bytes that arrived and the positions of its values. A value is decoded only when
// it is used.
//
// The package must not depend on HTTP, requests, or the public types of the SDK. Its entry points are [NewReader] and
// [Reader.Next], [Store], [Fields.Target], which writes rows into structs, and [Names], which reads lists of
// dimensions.
package rowjson
