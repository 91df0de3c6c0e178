package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// startRedis starts a redis-server on a free loopback port. It writes nothing to disk.
func startRedis(ctx context.Context) (address string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = listener.Addr().String()
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return "", nil, err
	}
	server := exec.CommandContext(ctx, "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", //nolint:gosec // a number
		"--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		return "", nil, fmt.Errorf("start redis-server: %w; install it, or give the address of a running one with -redis", err)
	}
	stop = func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}
	rdb := redis.NewClient(&redis.Options{Addr: address})
	defer func() { _ = rdb.Close() }()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err = rdb.Ping(ctx).Err(); err == nil {
			return address, stop, nil
		}
		if ctx.Err() != nil {
			stop()
			return "", nil, context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, fmt.Errorf("redis-server does not respond within 10 s: %w; start one and give its address with -redis", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
