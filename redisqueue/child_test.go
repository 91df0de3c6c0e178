package redisqueue_test

import "io"

const roleOf = "REDISQUEUE_TEST_ROLE"

func runChild(_ io.Reader, _ io.Writer) error { return nil }
