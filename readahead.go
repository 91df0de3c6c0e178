package webdelivery

// ReadOption changes how a collection is read. If an option is invalid, the sequence yields a [*ValidationError].
type ReadOption func(*int) error

// ReadAhead prefetches up to n pages while the caller works on earlier ones. The pages come in order, with at most n
// requests under way and n pages in memory. n is at least 1; above 1,000 it means 1,000. Default: a page is fetched
// when it is needed.
//
// When the first page has said how many pages exist, ReadAhead asks for the others by number. The sequence ends with
// a [*IncompleteError] if a page has another number than the requested one, or another total or page_count than the
// first page. A total that a page omits is not compared. So it notices most changes that others make while it reads,
// but not an item that is removed and another one that is added.
func ReadAhead(n int) ReadOption {
	return func(ahead *int) error {
		if n < 1 {
			return invalid("ReadAhead", "%d is below 1", n)
		}
		*ahead = n
		return nil
	}
}
