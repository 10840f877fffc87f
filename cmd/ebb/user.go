package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/term"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/dbpath"
)

// userVerb is what the verbs on users have in common: where the users are.
type userVerb struct {
	uri, path, db string
	// begins says that the data directory need not be there: who sets a server up adds its first user before it is started.
	begins bool
}

// maxPasswordLine is how long a line with a password may be.
const maxPasswordLine = 64 << 10

// userTimeout is how long a server may take to answer.
const userTimeout = 30 * time.Second

func user() *cobra.Command {
	return family("user", "Add, list and remove users, in a running server or in a data directory that none uses", userAdd(), userList(), userRemove())
}

func (v *userVerb) flags(cmd *cobra.Command) {
	dbpathFlag(cmd, &v.path)
	cmd.Flags().StringVar(&v.uri, "uri", "", "`address` of a running server, as mongodb://127.0.0.1:27017; without it the data directory is opened")
	cmd.Flags().StringVar(&v.db, "db", "admin", "`database` that the user is of")
}

func userAdd() *cobra.Command {
	v := &userVerb{begins: true}
	var roles []string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user; the password is read from standard input",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			granted, err := rolesNamed(roles, v.db)
			if err != nil {
				return optionError{err}
			}
			password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			err = v.run(cmd.Context(), bson.D{{Key: "createUser", Value: args[0]}, {Key: "pwd", Value: password}, {Key: "roles", Value: granted}}, nil)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "user %s of database %s added\n", args[0], v.db)
			}
			return err
		},
	}
	v.flags(cmd)
	cmd.Flags().StringArrayVar(&roles, "role", []string{"root@admin"}, "`role` to grant, as root, or readWrite@app for one of another database; may be given several times")
	return cmd
}

func userList() *cobra.Command {
	v := &userVerb{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all users and their roles",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var reply struct {
				Users []struct {
					User, DB string
					Roles    []struct{ Role, DB string }
				}
			}
			command := bson.D{{Key: "usersInfo", Value: bson.D{{Key: "forAllDBs", Value: true}}}}
			if err := v.run(cmd.Context(), command, &reply); err != nil {
				return err
			}
			for _, u := range reply.Users {
				var roles []string
				for _, r := range u.Roles {
					roles = append(roles, r.Role+"@"+r.DB)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s@%s: %s\n", u.User, u.DB, strings.Join(roles, " "))
			}
			return nil
		},
	}
	v.flags(cmd)
	return cmd
}

func userRemove() *cobra.Command {
	v := &userVerb{}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a user",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := v.run(cmd.Context(), bson.D{{Key: "dropUser", Value: args[0]}}, nil)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "user %s of database %s removed\n", args[0], v.db)
			}
			return err
		},
	}
	v.flags(cmd)
	return cmd
}

func oneArg(cmd *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(cmd, args); err != nil {
		return badOption(cmd, err)
	}
	return nil
}

// rolesNamed reads role or role@database.
func rolesNamed(texts []string, db string) (roles bson.A, err error) {
	for _, text := range texts {
		name, of, given := strings.Cut(text, "@")
		if !given {
			of = db
		}
		if name == "" || of == "" {
			return nil, fmt.Errorf("--role %q is neither a role nor role@database", text)
		}
		roles = append(roles, bson.D{{Key: "role", Value: name}, {Key: "db", Value: of}})
	}
	return roles, nil
}

// readPassword reads a line; who types it at a terminal does not see it.
func readPassword(in io.Reader, prompt io.Writer) (string, error) {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(prompt, "Password: ")
		line, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(prompt)
		return checkPassword(string(line), err)
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxPasswordLine)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return checkPassword(strings.TrimRight(line, "\r\n"), err)
}

func checkPassword(password string, err error) (string, error) {
	if err == nil && password == "" {
		err = errors.New("there is no password on standard input")
	}
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return password, nil
}

// run runs a command in the server, or in one that is started for it over the data directory.
func (v *userVerb) run(ctx context.Context, command bson.D, reply any) error {
	if v.uri != "" {
		return runAt(ctx, v.uri, v.db, command, reply)
	}
	if err := dbpath.CheckMarker(v.path); err != nil && !v.begins {
		return fmt.Errorf("%s is no data directory: %w", v.path, err)
	}
	folder, err := os.MkdirTemp("", "ebb-user") // which nobody else may enter
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	socket := filepath.Join(folder, "mongodb-0.sock")
	server, err := ebb.Open(ebb.Options{Addresses: []string{socket}, DBPath: v.path, Quiet: true})
	if errors.Is(err, ebb.ErrInUse) {
		return fmt.Errorf("%w; --uri mongodb://127.0.0.1:27017 asks the server that uses it", err)
	}
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	err = runAt(ctx, "mongodb://"+url.PathEscape(socket)+"/?directConnection=true", v.db, command, reply)
	stop()
	return errors.Join(err, <-served, server.Close())
}

func runAt(ctx context.Context, uri, db string, command bson.D, reply any) error {
	client, err := mongo.Connect(driver.Client().ApplyURI(uri).SetAppName("ebb user").SetServerSelectionTimeout(userTimeout))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	result := client.Database(db).RunCommand(ctx, command)
	if reply == nil {
		return result.Err()
	}
	return result.Decode(reply)
}
