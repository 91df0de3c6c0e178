package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const yesterdays = "yesterdays-password"

// rotating returns a function whose password is rotated after it was asked so often.
func rotating(asked *int, after int) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) {
		if *asked++; *asked <= after {
			return fixture.Username, yesterdays, nil
		}
		return fixture.Username, fixture.Password, nil
	}
}

// A call whose password was rotated meanwhile is sent once more, and no other is: section 7 has 401, and 403 for purges.
func TestAPasswordThatIsRotated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		auth     func(func(context.Context) (string, string, error)) webdelivery.Auth
		op       fixture.Operation
		after    int // passwords of yesterday
		requests int
		err      error
	}{
		"401":                      {webdelivery.BasicAuthFunc, fixture.GetTask, 1, 2, nil},
		"401 and no new password":  {webdelivery.BasicAuthFunc, fixture.GetTask, 9, 1, webdelivery.ErrUnauthorized},
		"403 of a purge":           {webdelivery.BasicAuthFunc, fixture.Submit, 1, 2, nil},
		"403 without new password": {webdelivery.BasicAuthFunc, fixture.Submit, 9, 1, webdelivery.ErrForbidden},
		"a login":                  {webdelivery.SessionAuthFunc, fixture.GetTask, 1, 3, nil},
		"a refused login":          {webdelivery.SessionAuthFunc, fixture.GetTask, 9, 1, webdelivery.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			fixture.InService(t, fixture.Setup{Auth: c.auth(rotating(&asked, c.after))}, func(f *fixture.Fixture) {
				require.ErrorIs(f, c.op.Call(f.Context(), f.Client), c.err)
				assert.Len(f, f.Srv.Requests(), c.requests)
			})
		})
	}
}

// What the function returns has the rules of BasicAuth, its error is that of the call, and nothing is sent with either.
func TestAFunctionWithoutAPassword(t *testing.T) {
	t.Parallel()
	locked := errors.New("the vault is locked")
	for want, pair := range map[string]func(context.Context) (string, string, error){
		locked.Error():          func(context.Context) (string, string, error) { return "", "", locked },
		"the password is empty": func(context.Context) (string, string, error) { return fixture.Username, "", nil },
	} {
		for _, auth := range []webdelivery.Auth{webdelivery.BasicAuthFunc(pair), webdelivery.SessionAuthFunc(pair)} {
			fixture.InService(t, fixture.Setup{Auth: auth}, func(f *fixture.Fixture) {
				err := fixture.PostWrite.Call(f.Context(), f.Client)
				require.ErrorContains(f, err, want)
				assert.Equal(f, want == locked.Error(), errors.Is(err, locked))
				require.NotErrorIs(f, err, webdelivery.ErrInvalid, "an earlier attempt of a call may have been sent")
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Empty(f, f.Srv.Requests())
			})
		}
	}
	_, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, webdelivery.BasicAuthFunc(nil))
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
}

// The passwords before a rotation are hidden, too: a slow call may have sent an old one.
func TestRotatedPasswordsAreHidden(t *testing.T) {
	t.Parallel()
	day := 0
	of := func(day int) string { return fmt.Sprintf("password-of-day-%02d", day) }
	pair := func(context.Context) (string, string, error) { day++; return fixture.Username, of(day), nil }
	fixture.InService(t, fixture.Setup{Auth: webdelivery.BasicAuthFunc(pair)}, func(f *fixture.Fixture) {
		for range 4 {
			require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
		}
		f.AddFault(testserver.Fault{Status: 400, Body: of(1) + ", " + of(2)})
		e, _ := errors.AsType[*webdelivery.Error](fixture.GetTask.Call(f.Context(), f.Client))
		require.NotNil(f, e)
		assert.Equal(f, "[redacted], [redacted]", string(e.Body))
	})
}

// Callers with pairs of their own do not make each other's calls be sent again.
func TestAPairForEachCaller(t *testing.T) {
	t.Parallel()
	type caller struct{}
	pair := func(ctx context.Context) (string, string, error) {
		name, _ := ctx.Value(caller{}).(string)
		return name, "password-of-" + name, nil
	}
	fixture.InService(t, fixture.Setup{Auth: webdelivery.BasicAuthFunc(pair)}, func(f *fixture.Fixture) {
		for _, name := range []string{"bob", "eve", "bob"} {
			require.ErrorIs(f, fixture.GetTask.Call(context.WithValue(f.Context(), caller{}, name), f.Client), webdelivery.ErrUnauthorized)
		}
		assert.Len(f, f.Srv.Requests(), 3)
	})
}

// The password of a file is that of the file now, and WEBDELIVERY_DIALECT sets the Dialect.
func TestFilesAndDialectsOfTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	for name, value := range map[string]string{
		"WEBDELIVERY_BASE_URL": "https://api.example.com", "WEBDELIVERY_CUSTOMER": fixture.Customer, "WEBDELIVERY_USERNAME": fixture.Username,
		"WEBDELIVERY_PASSWORD": "", "WEBDELIVERY_PASSWORD_FILE": file, "WEBDELIVERY_AUTH": "",
		"WEBDELIVERY_DIALECT": "TasksPrefix=/ops, StartTimeParam=startime",
	} {
		t.Setenv(name, value)
	}
	_, err := webdelivery.NewClientFromEnv()
	require.ErrorContains(t, err, "webdelivery: invalid WEBDELIVERY_PASSWORD_FILE: ")
	write(yesterdays + "\r\n")
	var sent []string
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithHTTPClient(&http.Client{
		Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			_, shown, _ := r.BasicAuth()
			sent = append(sent, r.URL.Path+" "+shown)
			return &http.Response{StatusCode: 404, Body: http.NoBody, Header: http.Header{}}, nil
		}),
	}))
	require.NoError(t, err)
	_, err = client.Tasks.Get(t.Context(), "7")
	require.ErrorIs(t, err, webdelivery.ErrNotFound)
	write(fixture.Password)
	_, err = client.Tasks.Get(t.Context(), "7")
	require.ErrorIs(t, err, webdelivery.ErrNotFound)
	assert.Equal(t, []string{"/acme/v1/ops/tasks/7 " + yesterdays, "/acme/v1/ops/tasks/7 " + fixture.Password}, sent)

	for _, wrong := range []string{"EntryKey", "entryKey=a", "=a", "EntryKey=a,", "EntryDeletePath=/x", "BatchDeletionMethod=a b"} {
		t.Setenv("WEBDELIVERY_DIALECT", wrong)
		_, err = webdelivery.NewClientFromEnv()
		assert.Equal(t, []string{"WEBDELIVERY_DIALECT"}, invalidFields(err), wrong)
	}
	t.Setenv("WEBDELIVERY_USERNAME", "a:b")
	_, err = webdelivery.NewClientFromEnv()
	assert.Equal(t, []string{"WEBDELIVERY_USERNAME"}, invalidFields(err))
}
