package rowjson

// Config configures a [Reader].
type Config struct {
	Limit    Limit    // for each row, and for everything except the rows
	Redactor Redactor // for the errors of a [Target]
	Query    any      // pointer to decode the member query into, as far as it fits; may be nil
}

// Limit is a maximum number of bytes, and the error if it is exceeded.
type Limit struct {
	Bytes int64
	Err   error
}

// Redactor removes secrets from errors.
type Redactor interface {
	Excerpt(text []byte, limit int) []byte // the first bytes of a text, up to the limit, without secrets
	Error(err error) error                 // err, without secrets in its text
}
