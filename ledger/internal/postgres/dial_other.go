//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

func limitUnacknowledged(time.Duration) func(network, address string, socket syscall.RawConn) error {
	return nil
}
