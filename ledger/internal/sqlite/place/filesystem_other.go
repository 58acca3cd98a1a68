//go:build !linux

package place

// NetworkFileSystem returns "": the type of a file system is known on Linux only.
func NetworkFileSystem(string) string { return "" }

// FileSystemOf returns the zero FileSystem: nothing is known here.
func FileSystemOf(string) FileSystem { return FileSystem{} }
