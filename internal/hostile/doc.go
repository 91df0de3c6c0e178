// Package hostile holds servers that do what the fake of internal/testserver never does, and the tests of the SDK
// against them, over real sockets. They cut connections at each moment, write frames of HTTP/2 by hand, and deliver
// requests late. What the tests show is what only sockets show: what arrives, how often and when, and whether the
// outcome in an error is true. They also notice a net/http that behaves in another way.
//
// The servers are written from the service document alone. What is not a test must neither import internal/testserver
// nor copy from it, because a mistake that the fake and the SDK share would go unnoticed.
//
// No test here depends on how fast the machine is, except that one in which a process stalls for 3 s may fail TestPace:
// nothing has a time limit but the run of the tests itself.
package hostile
