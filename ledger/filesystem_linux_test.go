package ledger_test

import (
	"testing"

	"jobledger/ledger"
)

func TestFilesystemNetworkTypes(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0x517b: "SMB", 0xfe534d42: "SMB", 0xff534d42: "SMB", 0x01021997: "9p", 0x65735546: "FUSE",
		0x00c36400: "Ceph",
		0x5346414f: "AFS", 0xef53: "", 0x01021994: "", 0x9123683e: "", 0x58465342: "", 0x794c7630: "", 0: "",
	} {
		if got := ledger.NetworkName(magic); got != want {
			t.Errorf("%#x: got %q, want %q", magic, got, want)
		}
	}
	if got := ledger.NetworkFileSystem("/proc/no/such/path"); got != "" {
		t.Errorf("a path that is not there: got %q, want none", got)
	}
}
