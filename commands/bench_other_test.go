//go:build !unix

package commands_test

import "testing"

func processorTime() int64 { return 0 }

func reportProcessor(*testing.B, int64) {}
