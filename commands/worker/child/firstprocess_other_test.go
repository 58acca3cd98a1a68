//go:build unix && !linux

package child

func firstProcess() {}
