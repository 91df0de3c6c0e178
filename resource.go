package webdelivery

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// encoding/json reads any object into any struct: {"message":"under maintenance"} becomes a task, and an entry
// becomes a network list. So this file checks every object that has an id in the service document. The type of each
// object, in the file of its service, says how to recognize it.

// resource is an object of section 2 of the service document that has an id of its own.
type resource interface {
	resourceKind() objects.Kind
	identity() string // its id or name
	lacks() string    // the required member that is missing; "" if none is
	evident() bool    // it has a member that no other kind has
}

func lacksID(id string) string {
	if id == "" {
		return "id"
	}
	return ""
}

// notResource says why an object is not a resource of this kind; "" if it may be.
func notResource(value resource, object []byte) string {
	return objects.Problem(value.resourceKind(), object, value.lacks(), value.evident())
}

// decodeResource reads an object and checks that it is the requested resource.
func (r *response) decodeResource(value resource) error {
	if err := r.decodeObject(value); err != nil {
		return err
	}
	if problem := notResource(value, r.Body); problem != "" {
		return r.bad(problem, nil)
	}
	return r.checkID(value.identity())
}

// fetch sends a call and reads the response into a new resource.
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

// checkID checks that the object has the requested id. The letter case of a UUID may differ.
func (r *response) checkID(id string) error {
	if want := r.call.id; want != "" && !sameID(id, want) {
		return r.bad("another object, whose id is "+strconv.Quote(string(wire.Clip([]byte(id)))), nil)
	}
	return nil
}

// sameID compares ids of lists and entries: UUIDs, in which the letter case does not matter (RFC 9562, section 4).
func sameID(a, b string) bool { return strings.EqualFold(a, b) }

// pageItem is one item of a page, with the problem that was found in it.
type pageItem[T any] struct {
	value   T
	problem string
}

// UnmarshalJSON reads the item and checks it while its text is available.
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
