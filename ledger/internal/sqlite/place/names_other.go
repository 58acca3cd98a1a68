//go:build !unix

package place

import "io/fs"

// linksOf returns 1: the system counts them only for an open file.
func linksOf(fs.FileInfo) int { return 1 }

func giveGroup(string, fs.FileInfo) {}
