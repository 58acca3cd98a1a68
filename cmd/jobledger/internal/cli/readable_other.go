//go:build !unix

package cli

import (
	"os"
)

// readable is not known here.
func readable(*os.File) bool { return false }
