package webdelivery

import (
	"context"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// JSON decodes any object into any struct: {"message":"under maintenance"} becomes a task. So every object that has an
// id in the service document must have the members without which it is useless, and the id that was requested.

// resource is an object of section 2 of the service document that has an id of its own.
type resource interface {
	identity() string // its id or name
	lacks() string    // the required member that is missing; "" if none is
}

// resourceOf is a pointer to a T that is a resource.
type resourceOf[T any] interface {
	*T
	resource
}

func lacksID(id string) string {
	if id == "" {
		return "id"
	}
	return ""
}

// decodeResource reads an object and checks that it is the requested resource.
func (r *response) decodeResource(value resource) error {
	if err := r.decodeObject(value); err != nil {
		return err
	}
	if missing := value.lacks(); missing != "" {
		return r.bad("no "+missing, nil)
	}
	return r.checkID(value.identity())
}

// fetch sends a call and reads the response into a new resource.
func fetch[T any, P resourceOf[T]](ctx context.Context, f *conn, cl call) (*T, error) {
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
	if want := r.id; want != "" && !sameID(id, want) {
		return r.bad("another object, whose id is "+strconv.Quote(string(wire.Clip([]byte(id)))), nil)
	}
	return nil
}

// sameID compares ids of lists and entries: UUIDs, in which the letter case does not matter (RFC 9562, section 4).
func sameID(a, b string) bool { return strings.EqualFold(a, b) }
