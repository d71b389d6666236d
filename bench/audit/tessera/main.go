// How many entries a second Tessera's POSIX storage integrates, all durable (it writes each file
// with O_SYNC and syncs each folder).
//
//	tessera FILE FOLDER BATCH: the entries of FILE, length (2 bytes) and bytes; prints one line
//
// As many Adds are under way as fill two batches, so that it never waits for entries.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: tessera FILE FOLDER BATCH")
	}
	batch, err := strconv.Atoi(os.Args[3])
	check(err)
	all, err := os.ReadFile(os.Args[1])
	check(err)
	var entries [][]byte
	for rest := all; len(rest) > 0; {
		length := int(binary.BigEndian.Uint16(rest))
		entries = append(entries, rest[2:2+length])
		rest = rest[2+length:]
	}

	ctx := context.Background()
	driver, err := posix.New(ctx, posix.Config{Path: os.Args[2]})
	check(err)
	secret, _, err := note.GenerateKey(rand.Reader, "ringfence.bench/tessera")
	check(err)
	signer, err := note.NewSigner(secret)
	check(err)
	appender, shutdown, reader, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).
		WithCheckpointInterval(time.Second).
		WithBatching(uint(batch), 100*time.Millisecond).
		WithPushback(uint(4*batch)))
	check(err)

	start := time.Now()
	underWay := make(chan tessera.IndexFuture, 2*batch)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for future := range underWay {
			_, err := future()
			check(err)
		}
	}()
	for _, entry := range entries {
		underWay <- appender.Add(ctx, tessera.NewEntry(entry))
	}
	close(underWay)
	<-done
	seconds := time.Since(start).Seconds()
	size, err := reader.IntegratedSize(ctx)
	check(err)
	if size != uint64(len(entries)) {
		log.Fatalf("%d of %d entries are integrated", size, len(entries))
	}
	fmt.Printf("tessera batch %d: %d entries in %.3f s, %.0f/s\n", batch, len(entries), seconds, float64(len(entries))/seconds)
	check(shutdown(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
