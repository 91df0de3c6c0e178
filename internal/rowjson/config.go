package rowjson

// Config has what a [Reader] needs besides the response.
type Config struct {
	Limit    Limit    // of one row, and of everything but the rows together
	Redactor Redactor // for the errors of a [Plan]
	Query    any      // a pointer that the member query is decoded into, as far as it fits; nil: nobody needs it

	StrictTexts bool // a text of a row that is not UTF-8, or has half of a surrogate pair, is an error
}

// Limit is a number of bytes, and the error for more of them.
type Limit struct {
	Bytes int64
	Err   error
}

// Redactor takes secrets out of what an error shows.
type Redactor interface {
	Excerpt(text []byte, most int, cut bool) []byte // the beginning of a text without secrets; cut: the text goes on
	Error(err error) error                          // an error that says the same without secrets
}
