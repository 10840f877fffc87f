package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
)

// heldLocks are the functions, with their receivers, that do something slow while they hold a lock, each with the reason. A lock named there is made for
// that: it keeps such work apart, and nobody who only looks takes it.
func heldLocks() map[string]string {
	return map[string]string{
		"Engine.takeOver":         "tables, which keeps apart who changes the list of tables as a whole; no reader takes it",
		"Engine.checkpoint":       "one checkpoint is taken at a time; nobody else takes that lock",
		"Sweeper.CountOrder":      "counting, so that a collection is counted by one at a time",
		"Sweeper.countOrder":      "counting, likewise",
		"Collector.Wait":          "a sync.Cond gives the lock back while it waits",
		"Sweeper.rewrite":         "compaction.mu, which one index compaction holds as long as it takes",
		"Sweeper.Recluster":       "one slice of reclustering at a time in a collection",
		"Sweeper.Vacuum":          "one slice of vacuuming at a time in a collection",
		"Monitor.eachStanding":    "fronts.mu, taken by serverStatus and by who asks for figures, for a bounded number of keys",
		"committer.admitOrLineUp": "mu, which a sync.Cond gives back while it waits for the line",
		"Engine.Still":            "committer.mu, likewise",
		"member.takeOver":         "turn, while one database gives way to another; who is served does not take it",
		"member.beginSnapshot":    "incoming.mu, which the sender of one snapshot holds for a part of it; nobody else takes it",
		"member.addToSnapshot":    "incoming.mu, likewise",
		"member.endSnapshot":      "incoming.mu, likewise",
		"Gate.Shut":               "one shuts the gate at a time; who enters does not take it",
	}
}

// slowCalls are the names of methods and functions that wait for a disk, the network or another's work.
func slowCalls() []string {
	return []string{"Sync", "SyncData", "SyncTo", "Commit", "Flush", "Compact", "Ingest", "Excise", "ReadFile", "WriteFile", "RemoveAll", "MkdirAll", "Accept", "Dial", "Wait", "Settle"}
}

// locks finds what may take long while a lock is held: a call that is given a context, one of slowCalls, a receive from a channel.
// It reads one function at a time and its syntax alone, so what a function that it calls does escapes it.
func locks(t *Tree) []Finding {
	allowed, used := heldLocks(), map[string]bool{}
	var out []Finding
	for _, pkg := range t.Packages {
		if !covers("internal/...", pkg.Dir) && pkg.Dir != "." {
			continue
		}
		for _, file := range pkg.code() {
			for _, decl := range file.AST.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				name := receiver(fn) + fn.Name.Name
				for _, slow := range slowUnderLock(fn.Body) {
					used[name] = true
					if allowed[name] == "" {
						out = append(out, Finding{file.Path, t.line(slow.at), fmt.Sprintf("%s while %s is locked, in %s", slow.what, slow.lock, name)})
					}
				}
			}
		}
	}
	if t.isWhole() {
		for _, name := range slices.Sorted(maps.Keys(allowed)) {
			if !used[name] {
				out = append(out, Finding{Path: "internal/tidy/locks.go", Text: name + " does nothing slow under a lock: take it out of heldLocks"})
			}
		}
	}
	return out
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	kind := fn.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if of, ok := kind.(*ast.IndexExpr); ok {
		kind = of.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

type slowCall struct {
	at         ast.Node
	what, lock string
}

// slowUnderLock walks a body in the order in which it is written. Where a branch unlocks and returns, what comes behind it is
// still locked.
func slowUnderLock(body *ast.BlockStmt) (out []slowCall) {
	w := lockWalk{}
	w.block(body.List, nil)
	return w.found
}

type lockWalk struct{ found []slowCall }

// block walks statements with the locks that are held before, and gives those that are held behind.
func (w *lockWalk) block(list []ast.Stmt, held []string) []string {
	for _, s := range list {
		held = w.stmt(s, held)
	}
	return held
}

func (w *lockWalk) stmt(s ast.Stmt, held []string) []string {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			if lock, op := lockOp(call); op != "" {
				if op == "Lock" || op == "RLock" {
					return append(slices.Clone(held), lock)
				}
				return slices.DeleteFunc(slices.Clone(held), func(l string) bool { return l == lock })
			}
		}
		w.look(s, held)
	case *ast.DeferStmt, *ast.GoStmt: // the one is done at the end, the other by somebody else
	case *ast.BlockStmt:
		return w.block(s.List, held)
	case *ast.IfStmt:
		if s.Init != nil {
			held = w.stmt(s.Init, held)
		}
		w.look(s.Cond, held)
		w.branch(s.Body.List, held)
		if s.Else != nil {
			w.stmt(s.Else, held)
		}
	case *ast.ForStmt:
		if s.Cond != nil {
			w.look(s.Cond, held)
		}
		w.branch(s.Body.List, held)
	case *ast.RangeStmt:
		w.look(s.X, held)
		w.branch(s.Body.List, held)
	case *ast.SwitchStmt:
		if s.Init != nil {
			held = w.stmt(s.Init, held)
		}
		w.branch(s.Body.List, held)
	case *ast.TypeSwitchStmt:
		w.branch(s.Body.List, held)
	case *ast.CaseClause:
		w.branch(s.Body, held)
	case *ast.SelectStmt:
		waits := true
		for _, c := range s.Body.List {
			clause := c.(*ast.CommClause)
			waits = waits && clause.Comm != nil
			w.branch(clause.Body, held)
		}
		if waits && len(held) > 0 {
			w.found = append(w.found, slowCall{s, "a select waits", held[0]})
		}
	case *ast.LabeledStmt:
		return w.stmt(s.Stmt, held)
	default:
		if s != nil {
			w.look(s, held)
		}
	}
	return held
}

func (w *lockWalk) branch(list []ast.Stmt, held []string) { w.block(list, held) }

// lockOp is the lock that a call locks or unlocks, and how.
func lockOp(call *ast.CallExpr) (lock, op string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) > 0 || !slices.Contains([]string{"Lock", "RLock", "Unlock", "RUnlock"}, sel.Sel.Name) {
		return "", ""
	}
	return text(sel.X), sel.Sel.Name
}

func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return text(e.X)
	case *ast.IndexExpr:
		return text(e.X) + "[]"
	case *ast.CallExpr:
		return text(e.Fun) + "()"
	}
	return "a lock"
}

// look notes what is slow in an expression or a simple statement, but not in functions that are made there for later.
func (w *lockWalk) look(n ast.Node, held []string) {
	if len(held) == 0 {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				w.found = append(w.found, slowCall{n, "a receive waits", held[0]})
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(slowCalls(), sel.Sel.Name) {
				w.found = append(w.found, slowCall{n, text(sel) + " may wait", held[0]})
			} else if len(n.Args) > 0 && isContext(n.Args[0]) && text(n.Fun) != "context.Cause" {
				w.found = append(w.found, slowCall{n, text(n.Fun) + " is given a context", held[0]})
			}
		}
		return true
	})
}

// isContext says whether an argument is a context, going by its name.
func isContext(e ast.Expr) bool {
	name := text(e)
	return name == "ctx" || path.Ext(name) == ".ctx" || path.Ext(name) == ".Ctx" || name == "context.Background()"
}
