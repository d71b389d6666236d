// Goal: logs that Ringfence wrote, its proofs and its cosignatures are accepted by Go's
// sumdb/tlog and sumdb/note and by Tessera's client and fsck, from files; and damage is not.
// Method: the logs of many sizes that peer_logs made; every proof in them; then single bytes of
// one are changed.
package peers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	formats "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type proofs struct {
	Log       string
	Witness   string
	Inclusion []struct {
		Index int64
		Entry []byte
		Proof [][]byte
	}
	Consistency []struct {
		Old   int64
		Proof [][]byte
	}
}

type sample struct {
	folder string // of the log
	size   int64
	proofs
}

func samples(t *testing.T) []sample {
	t.Helper()
	root := os.Getenv("RINGFENCE_PEER_LOGS")
	if root == "" {
		t.Fatal("RINGFENCE_PEER_LOGS is not set: run `make peers`")
	}
	names, err := os.ReadDir(root)
	if err != nil || len(names) == 0 {
		t.Fatalf("no logs in %s: %v", root, err)
	}
	var all []sample
	for _, name := range names {
		size, err := strconv.ParseInt(name.Name(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{folder: filepath.Join(root, name.Name(), "log"), size: size}
		text, err := os.ReadFile(filepath.Join(root, name.Name(), "proofs.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &s.proofs); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// tileReader gives sumdb/tlog the tiles of a log in the layout of tlog-tiles: without the height
// that Go's own paths carry, and level by level as ours.
type tileReader struct {
	read func(level, index uint64, width uint8) ([]byte, error)
}

func (r tileReader) Height() int { return 8 }
func (r tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		data, err := r.read(uint64(tile.L), uint64(tile.N), uint8(tile.W%256))
		if err != nil {
			return nil, err
		}
		if len(data) < tile.W*tlog.HashSize {
			return nil, fmt.Errorf("tile %v is cut short", tile)
		}
		all = append(all, data[:tile.W*tlog.HashSize])
	}
	return all, nil
}
func (r tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// Opens a checkpoint as Go's own note package and tlog read it.
func openWithGo(t *testing.T, text []byte, vkey string) (tlog.Tree, *note.Note) {
	t.Helper()
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatalf("note.NewVerifier: %v", err)
	}
	opened, err := note.Open(text, note.VerifierList(verifier))
	if err != nil {
		t.Fatalf("note.Open: %v", err)
	}
	// tlog.ParseTree wants the first line of Go's own database; the other lines are the same.
	lines := bytes.SplitN([]byte(opened.Text), []byte("\n"), 2)
	if string(lines[0]) != verifier.Name() {
		t.Fatalf("origin %q, key of %q", lines[0], verifier.Name())
	}
	tree, err := tlog.ParseTree(append([]byte("go.sum database tree\n"), lines[1]...))
	if err != nil {
		t.Fatalf("tlog.ParseTree: %v", err)
	}
	return tree, opened
}

func toHashes(all [][]byte) []tlog.Hash {
	hashes := make([]tlog.Hash, len(all))
	for i, one := range all {
		copy(hashes[i][:], one)
	}
	return hashes
}

func fileTiles(folder string) tileReader {
	files := client.FileFetcher{Root: folder}
	return tileReader{func(level, index uint64, width uint8) ([]byte, error) {
		return files.ReadTile(context.Background(), level, index, width)
	}}
}

func checkpoint(t *testing.T, s sample) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.folder, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func leafHashes(bundle []byte) ([][]byte, error) {
	entries := api.EntryBundle{}
	if err := entries.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	var hashes [][]byte
	for _, entry := range entries.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return hashes, nil
}

func TestGoTlogAcceptsNotesTilesAndProofs(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(strconv.FormatInt(s.size, 10), func(t *testing.T) {
			tree, _ := openWithGo(t, checkpoint(t, s), s.Log)
			if tree.N != s.size {
				t.Fatalf("size %d", tree.N)
			}
			hashes := tlog.TileHashReader(tree, fileTiles(s.folder))
			for _, one := range s.Inclusion {
				leaf := tlog.RecordHash(one.Entry)
				if err := tlog.CheckRecord(toHashes(one.Proof), tree.N, tree.Hash, one.Index, leaf); err != nil {
					t.Errorf("inclusion of %d: %v", one.Index, err)
				}
				// From our tiles, tlog makes the very same proof.
				own, err := tlog.ProveRecord(tree.N, one.Index, hashes)
				if err != nil || !equal(own, toHashes(one.Proof)) {
					t.Errorf("inclusion of %d: tlog proves it otherwise (%v)", one.Index, err)
				}
			}
			for _, one := range s.Consistency {
				old, err := tlog.TreeHash(one.Old, hashes)
				if err != nil {
					t.Fatalf("root of %d: %v", one.Old, err)
				}
				if err := tlog.CheckTree(toHashes(one.Proof), tree.N, tree.Hash, one.Old, old); err != nil {
					t.Errorf("consistency of %d: %v", one.Old, err)
				}
			}
			t.Logf("%d inclusion and %d consistency proofs", len(s.Inclusion), len(s.Consistency))
		})
	}
}

func equal(a, b []tlog.Hash) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestTesseraClientAcceptsProofs(t *testing.T) {
	ctx := context.Background()
	for _, s := range samples(t) {
		t.Run(strconv.FormatInt(s.size, 10), func(t *testing.T) {
			files := client.FileFetcher{Root: s.folder}
			verifier, err := formats.NewVerifier(s.Log)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _, err := client.FetchCheckpoint(ctx, files.ReadCheckpoint, verifier, verifier.Name())
			if err != nil {
				t.Fatal(err)
			}
			builder, err := client.NewProofBuilder(ctx, head.Size, files.ReadTile)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range s.Inclusion {
				leaf := rfc6962.DefaultHasher.HashLeaf(one.Entry)
				if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(one.Index), head.Size, leaf, one.Proof, head.Hash); err != nil {
					t.Errorf("inclusion of %d: %v", one.Index, err)
				}
				own, err := builder.InclusionProof(ctx, uint64(one.Index))
				if err != nil || !equal(toHashes(own), toHashes(one.Proof)) {
					t.Errorf("inclusion of %d: Tessera proves it otherwise (%v)", one.Index, err)
				}
			}
			for _, one := range s.Consistency {
				own, err := builder.ConsistencyProof(ctx, uint64(one.Old), head.Size)
				if err != nil || !equal(toHashes(own), toHashes(one.Proof)) {
					t.Errorf("consistency of %d: Tessera proves it otherwise (%v)", one.Old, err)
				}
			}
			bundle, err := client.GetEntryBundle(ctx, files.ReadEntryBundle, 0, head.Size)
			if err != nil || len(bundle.Entries) != int(min(s.size, 256)) {
				t.Errorf("first bundle: %d entries, %v", len(bundle.Entries), err)
			}
		})
	}
}

func checkWithFsck(fetcher fsck.Fetcher, vkey string) error {
	verifier, err := formats.NewVerifier(vkey)
	if err != nil {
		return err
	}
	return fsck.New(verifier.Name(), verifier, fetcher, leafHashes, fsck.Opts{N: 2}).Check(context.Background())
}

func TestTesseraFsckAcceptsLogs(t *testing.T) {
	for _, s := range samples(t) {
		if err := checkWithFsck(client.FileFetcher{Root: s.folder}, s.Log); err != nil {
			t.Errorf("log of %d: %v", s.size, err)
		}
	}
}

// A check that cannot fail shows nothing.
func TestTesseraFsckFindsDamage(t *testing.T) {
	for _, s := range samples(t) {
		if s.size != 257 {
			continue
		}
		for _, file := range []string{"tile/0/000", "tile/entries/000", "tile/0/001.p/1", "tile/entries/001.p/1", "tile/1/000.p/1", "checkpoint"} {
			path := filepath.Join(s.folder, file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := bytes.Clone(text)
			damaged[len(damaged)/3] ^= 1
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := checkWithFsck(client.FileFetcher{Root: s.folder}, s.Log); err == nil {
				t.Errorf("damage in %s was not found", file)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	t.Fatal("no log of 257 entries")
}

// Verifies a cosignature/v1 with the library that public witnesses and their clients use.
func openCosigned(text []byte, log, witness string) (time.Time, error) {
	logVerifier, err := note.NewVerifier(log)
	if err != nil {
		return time.Time{}, err
	}
	verifier, err := formats.NewVerifierForCosignatureV1(witness)
	if err != nil {
		return time.Time{}, err
	}
	opened, err := note.Open(text, note.VerifierList(logVerifier, verifier))
	if err != nil {
		return time.Time{}, err
	}
	for _, signature := range opened.Sigs {
		if signature.Name == verifier.Name() && signature.Hash == verifier.KeyHash() {
			return formats.CoSigV1Timestamp(signature)
		}
	}
	return time.Time{}, fmt.Errorf("no cosignature by %s", verifier.Name())
}

func TestAgentsCosignaturesVerify(t *testing.T) {
	for _, s := range samples(t) {
		text := checkpoint(t, s)
		when, err := openCosigned(text, s.Log, s.Witness)
		if err != nil {
			t.Fatalf("log of %d: %v", s.size, err)
		}
		if age := time.Since(when); age < -time.Minute || age > time.Hour {
			t.Errorf("cosigned at %v", when)
		}
		// With one bit of the cosignature changed it must not pass.
		last := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		line := bytes.Fields(text[last:])
		raw, err := base64.StdEncoding.DecodeString(string(line[2]))
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-1] ^= 1
		bad := fmt.Sprintf("%s— %s %s\n", text[:last], line[1], base64.StdEncoding.EncodeToString(raw))
		if _, err := openCosigned([]byte(bad), s.Log, s.Witness); err == nil {
			t.Errorf("a changed cosignature was accepted")
		}
	}
}
