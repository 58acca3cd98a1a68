package ledger

import "golang.org/x/sys/unix"

// networkFileSystem returns the name of the network file system that holds path; "" if it is local or unknown.
func networkFileSystem(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return ""
	}
	return networkName(uint32(st.Type)) // the magic numbers have 32 bits; the field has 32 or 64, signed
}

func networkName(magic uint32) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	}
	return ""
}

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
