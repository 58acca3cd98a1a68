//go:build !linux

package child

import (
	"context"
	"time"
)

// ReapOrphans does nothing: only on Linux does the first process of a container adopt orphans.
func ReapOrphans(context.Context, time.Duration) {}
