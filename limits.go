package webdelivery

// Limits of the service. [WithPurgeLimiter] describes the limit of purges, and [EventsRetention] says how old raw
// events may be. (Service document, [section 8].)
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
const (
	MaxListEntries         = 50_000 // entries of a network list
	MaxUpdateEntries       = 5_000  // entries of one call that changes a list; this package splits larger changes
	DefaultResultRows      = 10     // rows of a statistics result whose query has no Limit
	WAFTopKRows            = 20     // rows of a WAF top-K
	TrafficShapingTopKRows = 1_000  // rows of a traffic shaping top-K
)
