//go:build !linux

package child

import (
	"context"
	"time"
)

// ReapOrphans is for the first process of a container, so it has nothing to do here.
func ReapOrphans(context.Context, time.Duration) {}
