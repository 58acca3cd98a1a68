package ledger

import "golang.org/x/sys/unix"

// PlaceOf returns the file system that holds path.
func PlaceOf(path string) Place {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return Place{}
	}
	return Place{
		Known:    true,
		Network:  networkName(uint32(st.Type)),
		ReadOnly: st.Flags&unix.ST_RDONLY != 0,
		Free:     st.Bavail * uint64(st.Frsize),
		NoFiles:  st.Files > 0 && st.Ffree == 0, // some count none
	}
}
