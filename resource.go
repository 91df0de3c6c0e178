package webdelivery

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// encoding/json reads any object into any struct. So {"message":"under maintenance"} would be a task, an entry would be a
// network list, and nobody would notice. Every object that the service document gives an id is checked here. Its type,
// which stands with its service, says what it is.

// resource is an object of section 2 of the service document that has an id of its own.
type resource interface {
	resourceKind() objects.Kind
	identity() string // what it is known by
	lacks() string    // the member without which the object is of no use; "" if it is there
	evident() bool    // it has something that no other kind has
}

func lacksID(id string) string {
	if id == "" {
		return "id"
	}
	return ""
}

// notResource tells why an object is not what it was read into; "" if it may be.
func notResource(value resource, object []byte) string {
	if missing := value.lacks(); missing != "" {
		return "no " + missing
	}
	if value.evident() {
		return ""
	}
	if foreign := objects.Foreign(value.resourceKind(), object); foreign != "" {
		return "another resource, which has " + foreign
	}
	return ""
}

// decodeResource reads an object, and refuses one that is not what was asked for.
func (r *response) decodeResource(value resource) error {
	if err := r.decodeObject(value); err != nil {
		return err
	}
	if problem := notResource(value, r.Body); problem != "" {
		return r.bad(problem, nil)
	}
	return r.checkID(value.identity())
}

// fetch sends a call and reads the reply into a new T, a resource.
func fetch[T any, P interface {
	*T
	resource
}](ctx context.Context, f *funnel, cl call) (*T, error) {
	r, err := f.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := r.decodeResource(P(value)); err != nil {
		return nil, err
	}
	return value, nil
}

// checkID refuses another object than the one that was asked for. A UUID may come in another letter case.
func (r *response) checkID(id string) error {
	if want := r.id; want != "" && !sameID(id, want) {
		return r.bad("another object, whose id is "+strconv.Quote(string(wire.Clip([]byte(id)))), nil)
	}
	return nil
}

// sameID compares ids of lists and entries. They are UUIDs, whose letter case does not count (RFC 9562, section 4).
func sameID(a, b string) bool { return strings.EqualFold(a, b) }

// pageItem is one item of a page, with what is wrong with it.
type pageItem[T any] struct {
	value   T
	problem string
}

// UnmarshalJSON reads the item and checks it while its text is at hand.
func (i *pageItem[T]) UnmarshalJSON(b []byte) error {
	item := any(&i.value).(interface {
		resource
		json.Unmarshaler
	})
	err := item.UnmarshalJSON(b)
	if err == nil {
		i.problem = notResource(item, b)
	}
	return err
}
