package wire

import (
	"time"
	"unicode/utf8"
)

// Most objects have a plain form, too. ReadPlain reads them without reflection, in a fraction of the time that
// encoding/json takes. Decode reads every other form, so it alone decides what else is valid.

// Member is a member of an object that [ReadPlain] reads. [Into] and [IntoObject] create it.
type Member struct {
	name    string
	into    any
	members []Member // of an object
}

// Into reads the member with this name into a *string, *bool, *int or *time.Time. If into is nil, an object with this
// member is not plain. The name has ASCII characters only, and no capital letter.
func Into(name string, into any) Member { return Member{name: name, into: into} }

// IntoObject reads an object with these members.
func IntoObject(name string, members ...Member) Member { return Member{name: name, members: members} }

// ReadPlain reads an object into its members, as [Decode] with [Timestamp] does. It returns false if the object is not
// plain. Then it may have read some members, and the caller calls Decode.
//
// In a plain object, texts have no escapes, and numbers are whole ones of up to 18 digits. Timestamps have the form of
// [PlainTimestamp]. A null leaves its member unchanged. ReadPlain skips other members, if they are
// texts, whole numbers, true, false or null.
func ReadPlain(text []byte, members ...Member) bool {
	r := plainReader{text: text, at: SkipBlanks(text, 0)}
	return r.object(members) && SkipBlanks(text, r.at) == len(text)
}

// plainReader reads a text from a place on. After a method has returned false, the place means nothing.
type plainReader struct {
	text []byte
	at   int
	date Date
}

// next skips a character and the blanks around it. It returns false if there is another one.
func (r *plainReader) next(c byte) bool {
	r.at = SkipBlanks(r.text, r.at)
	if r.at >= len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at = SkipBlanks(r.text, r.at+1)
	return true
}

func (r *plainReader) object(members []Member) bool {
	if !r.next('{') {
		return false
	}
	if r.next('}') {
		return true
	}
	for {
		name, ok := r.string()
		if !ok || !r.next(':') || !r.member(name, members) {
			return false
		}
		if !r.next(',') {
			return r.next('}')
		}
	}
}

// member reads the value of a member with this name.
func (r *plainReader) member(name []byte, members []Member) bool {
	for i := range members {
		m := &members[i]
		switch {
		case m.name != string(name):
		case r.literal("null"):
			return m.into != nil || m.members != nil
		case m.members != nil:
			return r.object(m.members)
		default:
			return r.value(m.into)
		}
	}
	return r.unknown()
}

// value reads a value of the type of its member.
func (r *plainReader) value(into any) bool {
	switch into := into.(type) {
	case *string:
		text, ok := r.string()
		*into = string(text)
		return ok
	case *time.Time:
		text, ok := r.string()
		if ok {
			*into, ok = PlainTimestamp(text, &r.date)
		}
		return ok
	case *int:
		n, ok := r.int()
		*into = n
		return ok
	case *bool:
		*into = r.literal("true")
		return *into || r.literal("false")
	default:
		return false
	}
}

// unknown skips the value of a member that is not in the list.
func (r *plainReader) unknown() bool {
	if r.at < len(r.text) && r.text[r.at] == '"' {
		_, ok := r.string()
		return ok
	}
	if r.literal("null") || r.literal("true") || r.literal("false") {
		return true
	}
	_, ok := r.int()
	return ok
}

func (r *plainReader) literal(word string) bool {
	if end := r.at + len(word); end <= len(r.text) && string(r.text[r.at:end]) == word {
		r.at = end
		return true
	}
	return false
}

// string reads a string without escapes. It returns false for characters that encoding/json rejects or replaces.
func (r *plainReader) string() ([]byte, bool) {
	if r.at >= len(r.text) || r.text[r.at] != '"' {
		return nil, false
	}
	start, ascii := r.at+1, true
	end := PlainText(r.text, start)
	for end < len(r.text) && r.text[end] >= utf8.RuneSelf {
		end, ascii = PlainText(r.text, end+1), false
	}
	if end == len(r.text) || r.text[end] != '"' {
		return nil, false
	}
	r.at = end + 1
	text := r.text[start:end]
	return text, ascii || utf8.Valid(text)
}

// int reads a whole number that fits an int. What follows it decides whether it was the whole value.
func (r *plainReader) int() (int, bool) {
	start := r.at
	for r.at < len(r.text) && (r.text[r.at] == '-' || '0' <= r.text[r.at] && r.text[r.at] <= '9') {
		r.at++
	}
	number := r.text[start:r.at]
	n, ok := PlainInt(number)
	leading := len(number) > 1 && number[0] == '0' || len(number) > 2 && number[0] == '-' && number[1] == '0' // no JSON
	return int(n), ok && !leading && int64(int(n)) == n
}
