// Package webdeliverytest provides a fake of the web-delivery management service, for testing programs that use the
// SDK. It enforces every rule of the service document and records each request. It can inject faults, and its clock can
// be advanced.
//
//	func TestDeployPurgesThePage(t *testing.T) {
//		srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
//		err := deploy(t.Context(), srv.Client(t), "https://www.example.com/")
//		if err != nil || len(srv.Purged()) != 1 {
//			t.Errorf("%v after %d purges", err, len(srv.Purged()))
//		}
//	}
//
// In a testing/synctest bubble, an [InMemory] server and its clients use fake time. Rate limits, retries and waits then
// take no real time, and tests can assert exact durations.
//
//	func TestDeployRepeatsItsPurge(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
//			srv.Fail(webdeliverytest.FaultRule{
//				Path: "/cache/purge", Count: 1, Status: 503, Header: http.Header{"Retry-After": {"7"}},
//			})
//			began := time.Now()
//			err := deploy(t.Context(), srv.Client(t), "https://www.example.com/")
//			if took := time.Since(began); err != nil || took < 7*time.Second {
//				t.Errorf("%v after %v", err, took)
//			}
//		})
//	}
//
// Outside a bubble, time is real. [Clock.Advance] then makes the server's tasks, transactions and sessions age faster.
// It does not shorten the SDK's own waits for polls, purge permits and retries; use the options of the SDK for that.
//
// A new server is empty and has one user. Add content with [Server.AddTask], [Server.AddNetworkList] and
// [Server.AddEvents]. Change other properties with an [Option]. Where the service document leaves something open, the
// server uses one of several forms; [Dialect] selects another. Servers share nothing, so tests can run in parallel.
//
// Outside a test, use [Start] instead of [NewServer]. The command "webdelivery emulator" runs a fake service.
package webdeliverytest
