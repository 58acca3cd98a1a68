//go:build unix && !linux

package ownerfile

import "os"

// hasACL returns false: the mode alone says who may write.
func hasACL(*os.File) bool { return false }
