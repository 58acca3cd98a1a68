package place

import "golang.org/x/sys/unix"

// NetworkFileSystem returns the name of the network file system that holds path; "" if it is local or
// unknown.
func NetworkFileSystem(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return ""
	}
	return NetworkName(uint32(st.Type)) // the magic numbers have 32 bits; the field has 32 or 64, signed
}

// NetworkName returns the name of the network file system with this magic number; "" for any other.
func NetworkName(magic uint32) string {
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

// FileSystemOf returns the file system that holds path.
func FileSystemOf(path string) FileSystem {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return FileSystem{}
	}
	return FileSystem{
		Known:    true,
		Network:  NetworkName(uint32(st.Type)),
		ReadOnly: st.Flags&unix.ST_RDONLY != 0,
		Free:     st.Bavail * uint64(st.Frsize),
		Size:     st.Blocks * uint64(st.Frsize),
		NoFiles:  st.Files > 0 && st.Ffree == 0, // some file systems do not count inodes
	}
}
