package webdeliverytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Option configures a server. If an option is invalid, [Start] returns an error that names it.
type Option func(*settings) error

// settings holds what the options set.
type settings struct {
	config  testserver.Config
	memory  bool
	address string
}

func (s *settings) listen(fake *testserver.Server) error {
	switch {
	case s.memory && s.address != "":
		return errors.New("InMemory and WithAddress exclude each other; pass one of them")
	case s.memory:
		fake.ListenMemory()
		return nil
	case s.address != "":
		_, err := fake.ListenOn(s.address)
		return err
	default:
		_, err := fake.ListenTCP()
		return err
	}
}

// InMemory makes the server listen in memory instead of on a TCP port. Its connections work in a testing/synctest
// bubble. Each server has its own loopback address as URL. Only [Server.HTTPClient] and the clients of [Server.Client]
// reach it. Default: a free port of 127.0.0.1.
func InMemory() Option {
	return func(set *settings) error {
		set.memory = true
		return nil
	}
}

// WithAddress makes the server listen on a TCP address, for example "127.0.0.1:8080". Other machines can reach an
// address that is not on loopback. The server is then protected only by passwords, which clients send unencrypted.
func WithAddress(address string) Option {
	return func(set *settings) error {
		if address == "" {
			return errors.New(`WithAddress: the address is empty; pass one such as "127.0.0.1:8080"`)
		}
		set.address = address
		return nil
	}
}

// WithNow sets the function that [Server.Clock] gets the time from. Default: time.Now, which returns the fake time
// inside a testing/synctest bubble.
func WithNow(now func() time.Time) Option {
	return func(set *settings) error {
		if now == nil {
			return errors.New("WithNow: now is nil")
		}
		set.config.Clock = testserver.NewClock(now)
		return nil
	}
}

// WithCustomer sets the customer name in the path of all requests. Default: "acme".
func WithCustomer(name string) Option {
	return func(set *settings) error {
		if name == "" || name == "." || name == ".." || strings.IndexFunc(name, isControl) >= 0 {
			return fmt.Errorf("WithCustomer: %q cannot be an element of a path", name)
		}
		set.config.Customer = name
		return nil
	}
}

// User is a user of the service. (Section 5.)
type User struct {
	Name, Password string // required

	Domains          []string // domains that the user may purge, in the form of WithHostPatterns; nil means all
	MayNotViewConfig bool     // the service rejects this user's reads of network lists with 403
}

// WithUsers sets the users of the service. [Server.Client] uses the first one. Default: "alice" with the password
// "correct-horse-battery", without restrictions.
func WithUsers(users ...User) Option {
	return func(set *settings) error {
		if len(users) == 0 {
			return errors.New("WithUsers: pass at least one user")
		}
		set.config.Users = nil
		for _, user := range users {
			if err := user.check(set.config.Users); err != nil {
				return fmt.Errorf("WithUsers: %w", err)
			}
			user.Domains = slices.Clone(user.Domains)
			set.config.Users = append(set.config.Users, testserver.User(user))
		}
		return nil
	}
}

func (u User) check(before []testserver.User) error {
	switch {
	case u.Name == "" || u.Password == "":
		return fmt.Errorf("user %q needs a name and a password", u.Name)
	case strings.Contains(u.Name, ":"):
		return fmt.Errorf("user %q: the name has a colon, which Basic authentication cannot carry", u.Name)
	case strings.IndexFunc(u.Name+u.Password, isControl) >= 0:
		return fmt.Errorf("user %q: the name or the password has a control character", u.Name)
	case slices.ContainsFunc(before, func(other testserver.User) bool { return other.Name == u.Name }):
		return fmt.Errorf("user %q is there twice", u.Name)
	}
	return checkPatterns(u.Domains)
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// WithSessionLifetime sets how long a session is valid after its login, by [Server.Clock]. Default: until
// [Server.ExpireSessions].
func WithSessionLifetime(d time.Duration) Option {
	return func(set *settings) error {
		set.config.SessionLifetime = d
		return above0("WithSessionLifetime", d)
	}
}

// WithPurgeRate makes the server accept at most n purge requests in any window of the given length, by [Server.Clock].
// Both must be above 0. The server rejects the others with 503; [Dialect].TooFast changes that status. Default: 2 per
// second. (Section 8.)
func WithPurgeRate(n int, window time.Duration) Option {
	return func(set *settings) error {
		if n <= 0 {
			return fmt.Errorf("WithPurgeRate: %d purges: use a number above 0", n)
		}
		set.config.PurgeRate, set.config.PurgeWindow = n, window
		return above0("WithPurgeRate", window)
	}
}

// WithRefusedPurgesCounted makes the server count the purges that it rejects as too fast, as if it had accepted them.
// A client that retries too soon is then rejected again and again. The service document does not say whether they
// count. Default: they do not count; all other purges do, including those rejected for another reason.
func WithRefusedPurgesCounted() Option {
	return func(set *settings) error {
		set.config.CountRefused = true
		return nil
	}
}

// WithUnlimitedPurges makes the server accept purge requests at any rate. The SDK still limits its own rate, unless
// [webdelivery.WithPurgeLimiter] sets another limiter.
func WithUnlimitedPurges() Option {
	return func(set *settings) error {
		set.config.PurgeRate = -1
		return nil
	}
}

// WithPurgeDuration sets how long a transaction is PENDING, by [Server.Clock]. If d is 0, it ends at once. Default: 2
// s.
func WithPurgeDuration(d time.Duration) Option {
	return func(set *settings) error {
		set.config.PurgeDuration = orAtOnce(d)
		return notBelow0("WithPurgeDuration", d)
	}
}

// WithDeployDuration sets how long the task of a changed network list runs, by [Server.Clock]. If d is 0, it ends at
// once. Default: 2 s.
func WithDeployDuration(d time.Duration) Option {
	return func(set *settings) error {
		set.config.DeployDuration = orAtOnce(d)
		return notBelow0("WithDeployDuration", d)
	}
}

// orAtOnce converts a duration for testserver.Config, where 0 means the default and a negative value means at once.
func orAtOnce(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// WithHostPatterns sets the domains of the customer's properties, which are the domains that can be purged. A pattern
// is a name, or "*." followed by a name; "*" stands for one or more labels. Without patterns, the server rejects every
// purge. Default: example.com, example.net and all their subdomains. (Service document, section 4.4, rule 3.)
func WithHostPatterns(patterns ...string) Option {
	return func(set *settings) error {
		if err := checkPatterns(patterns); err != nil {
			return fmt.Errorf("WithHostPatterns: %w", err)
		}
		set.config.HostPatterns = append([]string{}, patterns...) // not nil
		return nil
	}
}

func checkPatterns(patterns []string) error {
	for _, pattern := range patterns {
		if name := strings.TrimPrefix(pattern, "*."); name == "" || strings.ContainsAny(name, "*/?# ") {
			return fmt.Errorf(`%q is neither a domain nor "*." and a domain`, pattern)
		}
	}
	return nil
}

// WithEvents generates security events, on average perSecond of them per second, up to a million. The same seed and
// rate give the same events. [Dialect].Vocabulary selects their words. The first event occurs at since; the zero time
// means 35 days before the start of the server. The server does not store the events but generates them for each query.
// Default: only the events of [Server.AddEvents].
func WithEvents(perSecond float64, seed uint64, since time.Time) Option {
	return func(set *settings) error {
		set.config.EventsPerSecond, set.config.EventSeed, set.config.EventsSince = perSecond, seed, since
		if perSecond > 0 && perSecond <= 1e6 { // NaN is neither
			return nil
		}
		return fmt.Errorf("WithEvents: %v events per second: use a number above 0, at most a million", perSecond)
	}
}

// WithRecordingDelay sets how long after its time an event appears in the statistics, by [Server.Clock]. A time range
// that has just ended therefore keeps gaining rows for a while, as in a service that needs time to record events.
// Default: 0.
func WithRecordingDelay(d time.Duration) Option {
	return func(set *settings) error {
		set.config.RecordingDelay = d
		return notBelow0("WithRecordingDelay", d)
	}
}

// WithSmallIDs makes the ids of transactions count from 1. By default they are odd numbers above 2^53, as the document
// allows: a program that stores one in a float64, as JavaScript and jq do, changes it.
func WithSmallIDs() Option {
	return func(set *settings) error {
		set.config.SmallIDs = true
		return nil
	}
}

// WithRequestLog makes the server call log with each request, after it has sent or cut the response. Calls may run
// concurrently. The server does not store the requests then, which suits one that runs for long. [Server.Requests] returns
// none and [Server.Count] returns 0.
func WithRequestLog(log func(Request)) Option {
	return func(set *settings) error {
		if log == nil {
			return errors.New("WithRequestLog: log is nil")
		}
		set.config.RequestLog = func(r testserver.Request) { log(Request(r)) }
		return nil
	}
}

func above0(option string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %v is too short: use a duration above 0", option, d)
	}
	return nil
}

func notBelow0(option string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v is negative: use 0 or more", option, d)
	}
	return nil
}
