package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// fromEnv is the variable that holds the URL of Redis if -redis is not set. Other users of the machine can read the
// arguments of a process, and a password in them.
const fromEnv = "REDIS_URL"

// connect connects to the Redis of -redis or REDIS_URL, and returns the option of a client that shares its limit. The
// process ends with the connection.
func (j *job) connect(ctx context.Context) ([]webdelivery.Option, error) {
	j.redisFrom = "-redis"
	if j.redis == "" && j.lines != nil {
		j.redis, j.redisFrom = os.Getenv(fromEnv), fromEnv
	}
	if j.redis == "" {
		return nil, nil
	}
	logging.Disable() // the program reports what fails
	parsed, err := redis.ParseURL(j.redis)
	if err != nil { // it may contain the password
		return nil, program.Misused("%s cannot be used; want a URL such as redis://redis.example.com:6379", j.redisFrom)
	}
	options := redislimit.ClientOptions(parsed.Addr)
	options.Username, options.Password, options.DB, options.TLSConfig = parsed.Username, parsed.Password, parsed.DB, parsed.TLSConfig
	j.redis, j.rdb = parsed.Addr, redis.NewUniversalClient(options)
	if err := j.rdb.Ping(ctx).Err(); err != nil {
		return nil, j.noRedis(err)
	}
	limiter, err := redislimit.New(j.rdb)
	return []webdelivery.Option{webdelivery.WithSharedLimiter(limiter)}, err
}

// queue returns the queue of this process, or with -redis that of all.
func (j *job) queue(client *webdelivery.Client) (interface {
	Purge(ctx context.Context, uris ...webdelivery.PurgeURI) ([]*webdelivery.PurgeReceipt, error)
	Close(ctx context.Context) error
}, error,
) {
	if j.rdb != nil {
		return redisqueue.New(j.rdb, client, redisqueue.Options{Action: j.action})
	}
	return client.Purge.NewQueue(webdelivery.QueueOptions{Action: j.action})
}

// ofRedis reports whether Redis is the cause, and not the service.
func ofRedis(err error) bool {
	_, limiter := errors.AsType[*redislimit.UnavailableError](err)
	return limiter || errors.Is(err, redisqueue.ErrRedis)
}

func (j *job) noRedis(err error) error {
	var advice string
	switch _, replied := errors.AsType[redis.Error](err); {
	case redis.IsAuthError(err):
		advice = "check the user name and the password in " + j.redisFrom
	case redis.IsPermissionError(err):
		advice = "grant the user in " + j.redisFrom + " the permissions that packages redislimit and redisqueue list"
	case replied:
		advice = "repair the Redis or Valkey at " + j.redis + ", or purge without " + j.redisFrom
	default:
		advice = "check that Redis or Valkey is running at " + j.redis + ", or purge without " + j.redisFrom
	}
	return program.Advise(fmt.Errorf("%s: %w", j.redisFrom, err), advice)
}
