//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package writequeue

import "os"

const canQueue = false

func tryLock(*os.File) bool  { return false }
func waitLock(*os.File) bool { return false }
func unlock(*os.File)        {}
