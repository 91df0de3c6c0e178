package rowjson

// Config has what a [Reader] needs besides the response.
type Config struct {
	Limit    Limit    // of one row, and of everything except the rows together
	Redactor Redactor // for the errors of a [Target]
	Query    any      // a pointer into which the member query is decoded, as far as it fits; nil: not decoded
}

// Limit is a number of bytes, and the error for more of them.
type Limit struct {
	Bytes int64
	Err   error
}

// Redactor takes secrets out of what an error shows.
type Redactor interface {
	Excerpt(text []byte, most int) []byte // the beginning of a text without secrets
	Error(err error) error                // an error that says the same without secrets
}
