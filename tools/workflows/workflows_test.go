package workflows

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

func TestActionlint(t *testing.T) {
	t.Parallel()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	require.NoError(t, err)
	errs, err := linter.LintDir(root+"/.github/workflows", nil)
	require.NoError(t, err)
	for _, e := range errs {
		t.Errorf("%s:%d: %s", e.Filepath, e.Line, e.Message)
	}
}

// The workflow on the page of an action is right, and sets only inputs and uses only outputs that the action has.
func TestPagesOfActions(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(read(t, "actions/purge/README.md"), "```yaml\n")
	text, _, found := strings.Cut(text, "```\n")
	require.True(t, found)
	local := regexp.MustCompile(`uses: webdelivery/webdelivery-go/(\S+)@v\S+`).ReplaceAllString(text, "uses: ./$1")
	require.NotEqual(t, text, local)
	path, err := filepath.Abs(root)
	require.NoError(t, err)
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{WorkingDir: path})
	require.NoError(t, err)
	project, err := actionlint.NewProject(path)
	require.NoError(t, err)
	errs, err := linter.Lint("page.yml", []byte(local), project)
	require.NoError(t, err)
	assert.Empty(t, errs)
}

// Every action of others is pinned to a commit, with its version as a comment, and to the same one everywhere.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^(\S+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	commits, found := map[string]string{}, 0
	for _, pattern := range []string{"/.github/workflows/*.yml", "/actions/*/action.yml", "/actions/*/README.md"} {
		files, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			require.NoError(t, err)
			for line := range strings.Lines(read(t, name)) {
				_, uses, ok := strings.Cut(line, "uses: ")
				if uses = strings.TrimSpace(uses); !ok || strings.HasPrefix(uses, "./") || strings.HasPrefix(uses, "webdelivery/") {
					continue
				}
				found++
				parts := pinned.FindStringSubmatch(uses)
				if !assert.NotNil(t, parts, "%s: %s", name, uses) {
					continue
				}
				repository := strings.Join(strings.SplitN(parts[1], "/", 3)[:2], "/")
				if before, known := commits[repository]; known {
					assert.Equal(t, before, parts[2], "%s: %s", name, repository)
				}
				commits[repository] = parts[2]
			}
		}
	}
	assert.Greater(t, found, 10)
}

// A workflow may do nothing, a job only what it names, and none has a secret but GitHub's own token.
func TestPermissions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "/.github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		text := read(t, ".github/workflows/"+name)
		w, errs := actionlint.Parse([]byte(text))
		require.Empty(t, errs, name)
		require.NotNil(t, w.Permissions, name)
		assert.Empty(t, w.Permissions.Scopes, name)
		assert.Nil(t, w.Permissions.All, name)
		for id, job := range w.Jobs {
			require.NotNil(t, job.Permissions, "%s: %s", name, id)
			assert.NotEmpty(t, job.Permissions.Scopes, "%s: %s", name, id)
		}
		for _, secret := range regexp.MustCompile(`secrets\.\w+`).FindAllString(text, -1) {
			assert.Equal(t, "secrets.GITHUB_TOKEN", secret, name)
		}
	}
}

// Dependabot looks at every module and every action.
func TestDependabotKnowsEveryModule(t *testing.T) {
	t.Parallel()
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &config))
	known := map[string][]string{}
	for _, update := range config.Updates {
		known[update.Ecosystem] = update.Directories
	}
	want := map[string][]string{"gomod": nil, "github-actions": {"/"}}
	require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		directory, relErr := filepath.Rel(root, filepath.Dir(path))
		if err != nil || relErr != nil {
			return err
		}
		directory = "/" + strings.TrimPrefix(filepath.ToSlash(directory), ".")
		switch filepath.Base(path) {
		case ".git":
			return filepath.SkipDir
		case "go.mod":
			want["gomod"] = append(want["gomod"], directory)
		case "action.yml":
			want["github-actions"] = append(want["github-actions"], directory)
		}
		return nil
	}))
	for ecosystem, directories := range want {
		slices.Sort(directories)
		assert.ElementsMatch(t, directories, known[ecosystem], ecosystem)
	}
}
