package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Two programs that make the same two calls, one with the SDK, one with net/http.

const sdkProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/webdelivery/webdelivery-go"
)

func main() {
	client, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth(os.Args[1], os.Args[2]))
	if err != nil {
		panic(err)
	}
	task, err := client.Tasks.Get(context.Background(), "task-1")
	fmt.Println(task, err)
	receipt, err := client.Purge.Submit(context.Background(), webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")},
	})
	fmt.Println(receipt, err)
}
`

const plainProgram = `package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func call(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, "https://api.example.com/acme/v1"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(os.Args[1], os.Args[2])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(out)
}

func main() {
	var task, receipt map[string]any
	fmt.Println(task, call("GET", "/tasks/task-1", nil, &task))
	request := map[string]any{"purge_request": map[string]any{"action": "PURGE",
		"uris": []any{map[string]string{"match_mode": "EXACT_LITERAL", "uri_pattern": "https://www.example.com/app.css"}}}}
	fmt.Println(receipt, call("POST", "/cache/purge", request, &receipt))
}
`

const sdkModule = "github.com/webdelivery/webdelivery-go"

// weight measures what importing the SDK adds to a program.
func (b *bench) weight() error {
	dir, err := os.MkdirTemp("", "weight")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := writePrograms(dir); err != nil {
		return err
	}
	// The first build updates go.mod and go.sum for the program.
	if _, err := golang(dir, nil, "build", "-mod=mod", "-o", "warm", "./sdk"); err != nil {
		return err
	}
	behind, err := golang(dir, nil, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./sdk")
	if err != nil {
		return err
	}
	modules := slices.DeleteFunc(distinct(behind), func(m string) bool { return m == sdkModule })
	known, err := golang(dir, nil, "list", "-mod=mod", "-m", "all")
	if err != nil {
		return err
	}
	b.figure("modules needed to build a program with the SDK, besides it", fmt.Sprint(len(modules)), "0", "", atMost(8, float64(len(modules)), ""))
	b.figure("go list -m all of that program, the SDK included", fmt.Sprint(len(distinct(known))-1), "0", "", goal{})
	if err := b.binaries(dir); err != nil {
		return err
	}
	if !b.sizes.coldBuild {
		return nil
	}
	return b.coldBuilds(dir)
}

// writePrograms creates a module with both programs, with the SDK's go.sum.
func writePrograms(dir string) error {
	root, err := golang(".", nil, "list", "-m", "-f", "{{.Dir}}", sdkModule)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum")) //nolint:gosec // a file of this repository
	if err != nil {
		return err
	}
	files := map[string]string{
		"go.mod": "module example.com/weight\n\ngo 1.26.0\n\nrequire " + sdkModule + " v0.1.0\n\nreplace " + sdkModule + " => " + root + "\n",
		"go.sum": string(sums), "sdk/main.go": sdkProgram, "plain/main.go": plainProgram,
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// binaries measures how much larger the program is, built by default and stripped.
func (b *bench) binaries(dir string) error {
	for _, flags := range []string{"", "-s -w"} {
		sizes := map[string]float64{}
		for _, program := range []string{"sdk", "plain"} {
			out := filepath.Join(dir, program+".bin")
			if _, err := golang(dir, nil, "build", "-ldflags="+flags, "-o", out, "./"+program); err != nil {
				return err
			}
			info, err := os.Stat(out)
			if err != nil {
				return err
			}
			sizes[program] = float64(info.Size()) / 1e6
		}
		what, g, more := "binary, reference the same calls with net/http", goal{}, sizes["sdk"]-sizes["plain"]
		if flags == "" {
			g = atMost(1.5, more, "MB more")
		} else {
			what += fmt.Sprintf(" (-ldflags=%q)", flags)
		}
		b.figure(what, fmt.Sprintf("%.2f MB", sizes["sdk"]), fmt.Sprintf("%.2f MB", sizes["plain"]), fmt.Sprintf("%+.2f MB", more), g)
	}
	return nil
}

// coldBuilds measures how long a build takes with empty caches.
func (b *bench) coldBuilds(dir string) error {
	took := map[string]time.Duration{}
	for _, program := range []string{"sdk", "plain"} {
		cache := "GOCACHE=" + filepath.Join(dir, "cache-"+program)
		began := time.Now()
		if _, err := golang(dir, []string{cache}, "build", "-o", "cold", "./"+program); err != nil {
			return err
		}
		took[program] = time.Since(began)
	}
	b.figure("cold build, reference the same calls with net/http", inTime(took["sdk"]), inTime(took["plain"]), times(float64(took["sdk"])/float64(took["plain"])), goal{})
	return nil
}

// golang runs the go command outside any workspace.
func golang(dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...) //nolint:gosec // all of them are in this file
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOWORK=off"), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func distinct(lines string) []string {
	all := strings.Split(lines, "\n")
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(line string) bool { return line == "" })
}
