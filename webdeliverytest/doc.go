// Package webdeliverytest is a fake of the web-delivery management service, for testing programs that use the SDK
// without the service: it keeps every rule of the service document, remembers what it was asked, goes wrong when told to,
// and lives by a clock that can be advanced.
//
//	func TestDeployPurgesThePage(t *testing.T) {
//		srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
//		err := deploy(t.Context(), srv.Client(t), "https://www.example.com/")
//		if err != nil || len(srv.Purged()) != 1 {
//			t.Errorf("%v after %d purges", err, len(srv.Purged()))
//		}
//	}
//
// In a bubble of testing/synctest, a server in memory and its clients live in fake time: limits, retries and waits take
// none, and are exact.
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
// Without a bubble, time is real. What the server lets age (tasks, transactions, sessions) then ages as quickly as
// [Clock.Advance] says; what the SDK waits for (looks, permits for purges, retries) takes as long as ever, unless its
// options make it short.
//
// A server begins empty, with one user. [Server.AddTask], [Server.AddNetworkList] and [Server.AddEvents] give it contents,
// [Option] values another character. Where the service document is silent it answers in one way of several; [Dialect] has
// the others. Contents, requests and faults belong to one server: any number of them run side by side.
//
// [Start] is [NewServer] where there is no test. examples/emulator in the repository is a fake service as a program.
package webdeliverytest
