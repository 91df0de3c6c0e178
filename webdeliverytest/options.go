package webdeliverytest

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Option changes the service that is faked. One that makes no sense is refused by [Start] with an error that names it.
type Option func(*settings) error

// settings are what the options fill.
type settings struct {
	config  testserver.Config
	memory  bool
	address string
}

func (set *settings) listen(fake *testserver.Server) error {
	switch {
	case set.memory && set.address != "":
		return errors.New("InMemory and WithAddress exclude each other")
	case set.memory:
		fake.ListenMemory()
		return nil
	case set.address != "":
		_, err := fake.ListenOn(set.address)
		return err
	default:
		_, err := fake.ListenTCP()
		return err
	}
}

// InMemory listens in memory: no port is used, and a testing/synctest bubble understands how its connections block.
// Each server has a loopback address of its own as URL, which only [Server.HTTPClient] and the clients of
// [Server.Client] reach. Default: a free port of 127.0.0.1.
func InMemory() Option {
	return func(set *settings) error {
		set.memory = true
		return nil
	}
}

// WithAddress listens on a TCP address, for example "127.0.0.1:8080". One that is not on loopback lets other machines
// in, which nothing but the users' passwords keeps out, sent in the clear.
func WithAddress(address string) Option {
	return func(set *settings) error {
		if address == "" {
			return errors.New("WithAddress: is empty")
		}
		set.address = address
		return nil
	}
}

// WithNow gives the time that [Server.Clock] begins with and goes by. Default: time.Now, which inside a testing/synctest
// bubble is the fake time.
func WithNow(now func() time.Time) Option {
	return func(set *settings) error {
		if now == nil {
			return errors.New("WithNow: is nil")
		}
		set.config.Clock = testserver.NewClock(now)
		return nil
	}
}

// WithCustomer names the customer in the path of every request. Default "acme".
func WithCustomer(name string) Option {
	return func(set *settings) error {
		if name == "" || name == "." || name == ".." || strings.IndexFunc(name, isControl) >= 0 {
			return fmt.Errorf("WithCustomer: %q is no path element", name)
		}
		set.config.Customer = name
		return nil
	}
}

// WithBasePath puts an escaped path, for example "/root", in front of the customer. Default: none.
func WithBasePath(path string) Option {
	return func(set *settings) error {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.EscapedPath() != path {
			return fmt.Errorf("WithBasePath: %q is no escaped path", path)
		}
		for _, element := range strings.Split(u.Path, "/")[1:] {
			if element == "" || element == "." || element == ".." {
				return fmt.Errorf("WithBasePath: %q has an element that is empty, or dots alone", path)
			}
		}
		set.config.BasePath = path
		return nil
	}
}

// User is somebody who may log in (service-interface section 5).
type User struct {
	Name, Password string // neither may be empty

	Domains          []string // domains that this user may purge, written like those of WithHostPatterns; nil means all
	MayNotViewConfig bool     // reads of network lists answer 403
}

// WithUsers says who may log in. [Server.Client] is the first of them. Default: "alice" with the password
// "correct-horse-battery", who may do everything.
func WithUsers(users ...User) Option {
	return func(set *settings) error {
		if len(users) == 0 {
			return errors.New("WithUsers: there is none")
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
		return fmt.Errorf("user %q: Basic authentication carries no name with a colon", u.Name)
	case strings.IndexFunc(u.Name+u.Password, isControl) >= 0:
		return fmt.Errorf("user %q: name or password hold a control character", u.Name)
	case slices.ContainsFunc(before, func(other testserver.User) bool { return other.Name == u.Name }):
		return fmt.Errorf("user %q is there twice", u.Name)
	}
	return checkPatterns(u.Domains)
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// WithSessionLifetime ends a session so long after its login, by [Server.Clock]. Default: only [Server.ExpireSessions]
// ends one.
func WithSessionLifetime(d time.Duration) Option {
	return func(set *settings) error {
		set.config.SessionLifetime = d
		return above0("WithSessionLifetime", d)
	}
}

// WithPurgeRate accepts n purge requests, above 0, in any window of that length, by [Server.Clock]. The server refuses
// more with 503; [Dialect].TooFast has other spellings. Default: 2 in a second (service-interface section 8).
func WithPurgeRate(n int, window time.Duration) Option {
	return func(set *settings) error {
		if n <= 0 {
			return fmt.Errorf("WithPurgeRate: %d is not above 0", n)
		}
		set.config.PurgeRate, set.config.PurgeWindow = n, window
		return above0("WithPurgeRate", window)
	}
}

// WithRefusedPurgesCounted makes the server count purges that it refuses as too fast against the rate, as if it had
// accepted them. A client that repeats too soon then stays refused. Whether a service counts them is open (open point 39).
// Default: only accepted purges count, and those refused for another reason.
func WithRefusedPurgesCounted() Option {
	return func(set *settings) error {
		set.config.CountRefused = true
		return nil
	}
}

// WithUnlimitedPurges takes purge requests as fast as they come. The SDK still spaces them, unless it is given another
// limiter by [webdelivery.WithPurgeLimiter].
func WithUnlimitedPurges() Option {
	return func(set *settings) error {
		set.config.PurgeRate = -1
		return nil
	}
}

// WithPurgeDuration says how long a transaction is PENDING, by [Server.Clock]; 0 means not at all. Default 2 s.
func WithPurgeDuration(d time.Duration) Option {
	return func(set *settings) error {
		set.config.PurgeDuration = orAtOnce(d)
		return notBelow0("WithPurgeDuration", d)
	}
}

// WithDeployDuration says how long the task of a changed network list runs, by [Server.Clock]; 0 means not at all.
// Default 2 s.
func WithDeployDuration(d time.Duration) Option {
	return func(set *settings) error {
		set.config.DeployDuration = orAtOnce(d)
		return notBelow0("WithDeployDuration", d)
	}
}

// orAtOnce spells a duration as the fake has it: there, 0 means the default.
func orAtOnce(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// WithHostPatterns says which domains the customer's properties have, and so which may be purged: names, and names after
// "*.", which stands for one or more labels (service-interface section 4.4 rule 3). None: no purge is valid. Default:
// example.com, example.net and everything below them.
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
			return fmt.Errorf("%q is no domain, nor one after \"*.\"", pattern)
		}
	}
	return nil
}

// WithEvents makes up security events, so many a second on average, at most a million. Which ones depends on the seed and
// the rate alone; [Dialect].Vocabulary has other words for them. There are none before since; zero means 35 days before
// the start. None of them is stored: an event is made when a query asks for it. Default: none but those of
// [Server.AddEvents].
func WithEvents(perSecond float64, seed uint64, since time.Time) Option {
	return func(set *settings) error {
		set.config.EventsPerSecond, set.config.EventSeed, set.config.EventsSince = perSecond, seed, since
		if perSecond > 0 && perSecond <= 1e6 { // NaN is neither
			return nil
		}
		return fmt.Errorf("WithEvents: %v a second is not above 0 and at most a million", perSecond)
	}
}

// WithRecordingDelay lets every event show in the statistics so long after its time, by [Server.Clock]. So rows are still
// added to a span that has ended, as services need a while to record an event. Default: 0, events show at once.
func WithRecordingDelay(d time.Duration) Option {
	return func(set *settings) error {
		set.config.RecordingDelay = d
		return notBelow0("WithRecordingDelay", d)
	}
}

// WithIdleTimeout closes a connection that was not used for so long, as servers and load balancers do. Default: never.
func WithIdleTimeout(d time.Duration) Option {
	return func(set *settings) error {
		set.config.IdleTimeout = d
		return above0("WithIdleTimeout", d)
	}
}

// WithRequestLog gives every request to log when it was answered or cut, each in a goroutine of its own, instead of
// keeping it: for a server that runs long. [Server.Requests] and [Server.Count] then know of none.
func WithRequestLog(log func(Request)) Option {
	return func(set *settings) error {
		if log == nil {
			return errors.New("WithRequestLog: is nil")
		}
		set.config.RequestLog = func(r testserver.Request) { log(Request(r)) }
		return nil
	}
}

func above0(option string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %v is not above 0", option, d)
	}
	return nil
}

func notBelow0(option string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v is below 0", option, d)
	}
	return nil
}
