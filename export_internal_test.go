package webdelivery

// SetFew lets an export search for late events also where it would read all again, because there are fewer than 10,000.
func (e *Export) SetFew(few int64) { e.few = few }
