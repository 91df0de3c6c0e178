package suite_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// showcase collects everything that a program may show of a value until it is checked. As a writer it collects the records of a log.
type showcase struct {
	hidden []string // what must never be shown

	mu     sync.Mutex
	tokens []string // of sessions; kept until the next check
	texts  []string
	shown  int
	prints map[reflect.Type]int
}

// allPrints is how many values of a type are printed in every way. Of the others, the fields show what these ways do.
const allPrints = 10

func (s *showcase) show(values ...any) {
	if slices.ContainsFunc(values, func(v any) bool { _, is := v.(*webdelivery.PurgeQueue); return is }) {
		synctest.Wait() // its last contexts end in goroutines of their own, and fmt takes no locks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		s.print(v)
		for _, err := range tree(v) {
			s.print(err)
		}
	}
}

// print runs while the lock is held.
func (s *showcase) print(v any) {
	s.note(reflect.ValueOf(v))
	s.prints[reflect.TypeOf(v)]++
	if s.prints[reflect.TypeOf(v)] <= allPrints {
		s.texts = append(s.texts, fixture.EveryPrint(v))
	} else {
		s.texts = append(s.texts, fmt.Sprintf("%v %#v", v, v))
	}
}

func (s *showcase) Write(record []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, string(record))
	return len(record), nil
}

// hide records the session that a request shows.
func (s *showcase) hide(h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, token, found := strings.Cut(h.Get("Cookie"), "authtoken="); found && !slices.Contains(s.tokens, token) {
		s.tokens = append(s.tokens, token)
	}
}

// check fails if anything that was shown since the last check contains a secret, as text or as the numbers of its
// bytes.
func (s *showcase) check(t testing.TB, where string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.texts, "\n")
	for _, secret := range append(s.tokens, s.hidden...) {
		for _, form := range []string{secret, fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]")} {
			if at := strings.Index(all, form); at >= 0 {
				t.Errorf("%s: %q is shown in %s", where, form, all[max(0, at-200):min(len(all), at+100)])
			}
		}
	}
	s.shown += len(s.texts)
	s.texts, s.tokens = nil, nil
}

// note finds the plain texts in a value, as far as a program outside of the package can see them.
func (s *showcase) note(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.note(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.note(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			s.texts = append(s.texts, fmt.Sprintf("%s", v))
			return
		}
		for i := range v.Len() {
			s.note(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			s.note(key)
			s.note(v.MapIndex(key))
		}
	default:
	}
}

func tree(v any) []error {
	var inside []error
	switch e := v.(type) {
	case interface{ Unwrap() error }:
		inside = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inside = e.Unwrap()
	}
	var all []error
	for _, err := range inside {
		if err != nil {
			all = append(append(all, err), tree(err)...)
		}
	}
	return all
}
