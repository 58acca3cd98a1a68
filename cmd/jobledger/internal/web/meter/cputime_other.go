//go:build !unix

package meter

import "time"

// ProcessorTime is not known here.
func ProcessorTime() (used time.Duration, known bool) { return 0, false }
