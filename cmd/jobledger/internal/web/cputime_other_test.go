//go:build !unix

package web

import "time"

func processorTime() time.Duration { return 0 }
