// Goal: a running Ringfence is read by Tessera's client over HTTPS, its agents' cosignatures verify
// elsewhere, and a witness that speaks C2SP tlog-witness cosigns its checkpoints, across restarts
// of either.
// Method: `ringfence up` in a folder of its own, and transparency.dev's omniwitness in this process
// on a loopback port with TLS.
package peers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	formats "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/witness/omniwitness"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const patience = 2 * time.Minute

type ringfence struct {
	t     *testing.T
	state string
	env   []string
}

func (r *ringfence) try(words ...string) (string, error) {
	build := os.Getenv("RINGFENCE_BUILD_DIR")
	command := exec.Command(filepath.Join(build, "ringfence"), words...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "RINGFENCE_") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "RINGFENCE_STATE="+r.state, "NO_COLOR=1")
	command.Env = append(command.Env, r.env...)
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("ringfence %s: %v\n%s%s", strings.Join(words, " "), err, output, errors.String())
	}
	return string(output), nil
}

func (r *ringfence) run(words ...string) string {
	r.t.Helper()
	output, err := r.try(words...)
	if err != nil {
		r.t.Fatal(err)
	}
	return output
}

func (r *ringfence) up()   { r.t.Helper(); r.run("up", "--detach", "--listen", "127.0.0.1:0") }
func (r *ringfence) down() { r.t.Helper(); r.run("down") }

func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = condition(); err == nil {
			return
		}
	}
	t.Fatalf("waited in vain for %s: %v", what, err)
}

type keys struct {
	Log       string
	Witnesses []string
}

func (r *ringfence) keys() keys {
	r.t.Helper()
	var all keys
	if err := json.Unmarshal([]byte(r.run("audit", "keys", "--output", "json")), &all); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// Tessera's fetcher for the log as the API serves it, with the local administrator's token.
func (r *ringfence) fetcher() *client.HTTPFetcher {
	r.t.Helper()
	var access struct {
		Server string
		CaPem  string `json:"ca_pem"`
		Token  string
	}
	text, err := os.ReadFile(filepath.Join(r.state, "cli", "context.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &access); err != nil {
		r.t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(access.CaPem))
	http := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	at, err := url.Parse("https://" + access.Server + "/v1/audit/log/")
	if err != nil {
		r.t.Fatal(err)
	}
	fetcher, err := client.NewHTTPFetcher(at, http)
	if err != nil {
		r.t.Fatal(err)
	}
	fetcher.SetAuthorizationHeader("Bearer " + access.Token)
	return fetcher
}

// pinned is a log as it was when its checkpoint was read: it goes on growing meanwhile.
type pinned struct {
	*client.HTTPFetcher
	checkpoint []byte
}

func (p pinned) ReadCheckpoint(context.Context) ([]byte, error) { return p.checkpoint, nil }

func start(t *testing.T) *ringfence {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("a node needs root for its jailer: run `make peers` as root")
	}
	state, err := os.MkdirTemp("", "ringfence-peers-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &ringfence{t: t, state: state, env: []string{"RINGFENCE_UID_BASE=1300000000"}}
	t.Cleanup(func() {
		_, _ = r.try("down")
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(state, "logs", "server*"))
			for _, log := range logs {
				text, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, text[max(0, len(text)-4000):])
			}
		}
		os.RemoveAll(state)
	})
	r.up()
	return r
}

func TestLiveLogOverHttps(t *testing.T) {
	r := start(t)
	for i := 0; i < 20; i++ { // each reading is an entry
		r.run("audit", "list", "--limit", "1")
	}
	all := r.keys()
	fetcher := r.fetcher()
	head, err := fetcher.ReadCheckpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkWithFsck(pinned{fetcher, head}, all.Log); err != nil {
		t.Errorf("fsck over HTTPS: %v", err)
	}
	tree, _ := openWithGo(t, head, all.Log)
	t.Logf("%d entries", tree.N)
	for index := int64(0); index < tree.N; index += 1 + tree.N/16 {
		var file struct {
			Checkpoint string
			Entry      []byte
			Index      int64
			Proof      [][]byte
		}
		if err := json.Unmarshal([]byte(r.run("audit", "prove", fmt.Sprint(index))), &file); err != nil {
			t.Fatal(err)
		}
		signed, _ := openWithGo(t, []byte(file.Checkpoint), all.Log)
		if err := tlog.CheckRecord(toHashes(file.Proof), signed.N, signed.Hash, file.Index, tlog.RecordHash(file.Entry)); err != nil {
			t.Errorf("what `audit prove %d` printed: %v", index, err)
		}
	}
	if len(all.Witnesses) == 0 {
		t.Fatal("no agent's key")
	}
	eventually(t, "an agent's cosignature", func() error {
		text, err := fetcher.ReadCheckpoint(context.Background())
		if err != nil {
			return err
		}
		_, err = openCosigned(text, all.Log, all.Witnesses[0])
		return err
	})
}

// A CA and a certificate for 127.0.0.1, so that the witness can be spoken to with TLS.
func loopbackTls(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	template.Subject.CommonName = "peers"
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

type witness struct {
	vkey    string // of its cosignatures
	signer  note.Signer
	address string
	memory  omniwitness.Persistence
	stop    func()
}

func (w *witness) serve(t *testing.T, log string, certificate tls.Certificate) {
	t.Helper()
	logs, err := omniwitness.NewStaticLogConfig([]byte("Logs:\n  - Origin: " + strings.SplitN(log, "+", 2)[0] + "\n    PublicKey: " + log + "\n    URL: http://unused.invalid/\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w.address == "" {
		w.address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = omniwitness.Main(ctx, omniwitness.OperatorConfig{WitnessKeys: []note.Signer{w.signer}, Logs: logs}, w.memory,
			tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}), http.DefaultClient)
	}()
	w.stop = func() { cancel(); listener.Close(); <-done }
}

func TestWitnessCosignsOurCheckpoints(t *testing.T) {
	r := start(t)
	all := r.keys()
	r.down()

	secret, public, err := note.GenerateKey(rand.Reader, "witness.test/omni")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := formats.NewSignerForCosignatureV1(secret)
	if err != nil {
		t.Fatal(err)
	}
	vkey, err := formats.VKeyToCosignatureV1(public)
	if err != nil {
		t.Fatal(err)
	}
	certificate, ca := loopbackTls(t)
	w := &witness{vkey: vkey, signer: signer, memory: inmemory.New()}
	w.serve(t, all.Log, certificate)
	defer func() { w.stop() }()
	caFile := filepath.Join(r.state, "witness-ca.pem")
	if err := os.WriteFile(caFile, []byte(ca), 0o644); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "RINGFENCE_SERVER_WITNESSES=https://"+w.address+"/ "+vkey, "RINGFENCE_SERVER_WITNESS_CA="+caFile)
	r.up()

	logFolder := filepath.Join(r.state, "server", "log")
	cosigned := func(least int64) error {
		text, err := os.ReadFile(filepath.Join(logFolder, "checkpoint"))
		if err != nil {
			return err
		}
		if _, err := openCosigned(text, all.Log, w.vkey); err != nil {
			return err
		}
		tree, _ := openWithGo(t, text, all.Log)
		if tree.N < least {
			return fmt.Errorf("cosigned at %d, waiting for %d", tree.N, least)
		}
		return nil
	}
	size := func() int64 {
		text, err := os.ReadFile(filepath.Join(logFolder, "checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		tree, _ := openWithGo(t, text, all.Log)
		return tree.N
	}
	eventually(t, "the first cosignature", func() error { return cosigned(1) })
	for i := 0; i < 3; i++ {
		before := size()
		r.run("audit", "list", "--limit", "1")
		eventually(t, "a cosignature of a longer log", func() error { return cosigned(before + 1) })
	}

	// Our server starts anew and does not know what the witness has seen: the witness's 409 tells it.
	r.down()
	before := size()
	r.up()
	eventually(t, "a cosignature after our restart", func() error { return cosigned(before + 1) })

	// The witness is away while the log grows, and the log goes on.
	w.stop()
	before = size()
	for i := 0; i < 5; i++ {
		r.run("audit", "list", "--limit", "1")
	}
	eventually(t, "a longer log without the witness", func() error {
		if size() < before+5 {
			return fmt.Errorf("size %d", size())
		}
		return nil
	})
	w.serve(t, all.Log, certificate)
	eventually(t, "a cosignature after the witness's absence", func() error { return cosigned(before + 5) })

	// And our own verifier takes it, while a witness that has not cosigned is missed.
	eventually(t, "`audit verify --witness`", func() error {
		_, err := r.try("audit", "verify", "--log", logFolder, "--key", all.Log, "--witness", w.vkey)
		return err
	})
	_, other, err := note.GenerateKey(rand.Reader, "witness.test/other")
	if err != nil {
		t.Fatal(err)
	}
	otherKey, err := formats.VKeyToCosignatureV1(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.try("audit", "verify", "--log", logFolder, "--key", all.Log, "--witness", otherKey); err == nil {
		t.Error("a witness that never cosigned was not missed")
	}
}
