package webdelivery

// ReadOption changes how a collection is read. If an option is invalid, the sequence yields a [*ValidationError].
type ReadOption func(*int) error

// ReadAhead prefetches up to n pages while the caller works on earlier ones. The pages come in order, with at most n
// requests under way and n pages in memory. n is at least 1; above 1,000 it means 1,000. Default: a page is fetched
// when it is needed.
//
// Once the first page has said how many pages exist, the others are requested by number. The sequence ends with an
// [*IncompleteError] if a page has a different number than the requested one, or a different total or page_count than
// the first page; a total that a page omits is not compared. This detects most changes that others make meanwhile, but
// not the removal of one item together with the addition of another.
func ReadAhead(n int) ReadOption {
	return func(ahead *int) error {
		if n < 1 {
			return invalid("ReadAhead", "%d is below 1", n)
		}
		*ahead = n
		return nil
	}
}
