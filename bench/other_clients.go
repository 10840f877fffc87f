package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// otherClients are this program a second time, in a process of their own: what they compute does not hold up the clients that are measured.
// The process gets its task on its standard input, as JSON, tells what it has to tell on its standard output, a line of JSON each, and ends with its input.
type otherClients struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// otherClientsOf is what the process does that was started with a verb; nil where that is none of theirs.
func otherClientsOf(verb string) func(ctx context.Context, in io.Reader, out io.Writer) error {
	switch verb {
	case newcomersVerb:
		return beNewcomers
	case listenerVerb:
		return beListener
	case busyVerb:
		return beBusy
	}
	return nil
}

// startOther starts the process by its verb.
func startOther(ctx context.Context, verb string, task any) (*otherClients, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, verb)
	cmd.Stderr = os.Stderr
	setApart(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(task)
	if err == nil {
		_, err = in.Write(append(text, '\n'))
	}
	o := &otherClients{cmd, in, bufio.NewReader(out)}
	if err != nil {
		return nil, errors.Join(err, o.end())
	}
	return o, nil
}

// await waits for what it tells next.
func (o *otherClients) await(told any) error {
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the clients in a process of their own: %w", err)
	}
	return json.Unmarshal(line, told)
}

// end ends its input, and waits for the process.
func (o *otherClients) end() error {
	return errors.Join(o.in.Close(), o.cmd.Wait())
}

// readTask is what the process does first.
func readTask(in *bufio.Reader, task any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("what to do: %w", err)
	}
	if err := json.Unmarshal(line, task); err != nil {
		return fmt.Errorf("what to do: %w", err)
	}
	return nil
}
