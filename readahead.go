package webdelivery

import "fmt"

// ReadOption changes how a collection is read. One that makes no sense is a [*ValidationError], which the sequence yields.
type ReadOption func(*int) error

// ReadAhead fetches up to n pages ahead while the caller works on the ones before. The pages come in order, with at most
// n requests under way and n pages in memory. n is at least 1; above 1,000 it means 1,000. Default: each page is fetched
// when it is needed.
//
// ReadAhead asks for pages by number, once the first page has said how many there are. If a page has another number than
// the one that was asked for, or another total or page_count than the first page, the sequence ends with a
// [*PaginationError]. A total that a page leaves out is not compared.
func ReadAhead(n int) ReadOption {
	return func(ahead *int) error {
		if n < 1 {
			return invalid("ReadAhead", "%d is below 1", n)
		}
		*ahead = n
		return nil
	}
}

func pagesAhead(options []ReadOption) (ahead int, err error) {
	for i, option := range options {
		if option == nil {
			return 0, invalid(fmt.Sprintf("options[%d]", i), "is nil; remove it")
		}
		if err := option(&ahead); err != nil {
			return 0, err
		}
	}
	return ahead, nil
}
