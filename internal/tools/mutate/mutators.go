package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// swaps are the operators of expressions and what each becomes.
func swaps(operator token.Token) []token.Token {
	switch operator {
	case token.EQL:
		return []token.Token{token.NEQ}
	case token.NEQ:
		return []token.Token{token.EQL}
	case token.LSS:
		return []token.Token{token.GEQ, token.LEQ}
	case token.LEQ:
		return []token.Token{token.GTR, token.LSS}
	case token.GTR:
		return []token.Token{token.LEQ, token.GEQ}
	case token.GEQ:
		return []token.Token{token.LSS, token.GTR}
	case token.LAND:
		return []token.Token{token.LOR}
	case token.LOR:
		return []token.Token{token.LAND}
	case token.ADD:
		return []token.Token{token.SUB}
	case token.SUB:
		return []token.Token{token.ADD}
	case token.MUL, token.REM:
		return []token.Token{token.QUO}
	case token.QUO:
		return []token.Token{token.MUL}
	case token.AND:
		return []token.Token{token.OR}
	case token.OR:
		return []token.Token{token.AND}
	case token.ADD_ASSIGN:
		return []token.Token{token.SUB_ASSIGN}
	case token.SUB_ASSIGN:
		return []token.Token{token.ADD_ASSIGN}
	case token.INC:
		return []token.Token{token.DEC}
	case token.DEC:
		return []token.Token{token.INC}
	default:
		return nil
	}
}

// walk searches a node for mutations. results are the results of the function that it is
// in.
func (s *sourceFile) walk(n ast.Node, results *ast.FieldList) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				s.walk(n.Body, n.Type.Results)
			}
			return false
		case *ast.FuncLit:
			s.walk(n.Body, n.Type.Results)
			return false
		case *ast.SwitchStmt:
			s.cases(n, n.Body, results, n.Init, n.Tag)
			return false
		case *ast.SelectStmt:
			s.cases(n, n.Body, results)
			return false
		case *ast.CallExpr:
			return !isLog(n)
		case *ast.DeferStmt, *ast.ImportSpec, *ast.ArrayType:
			return false
		case *ast.BinaryExpr:
			s.operator(n.OpPos, n.Op)
			if n.Op == token.LAND || n.Op == token.LOR {
				s.truth(n.X)
				s.truth(n.Y)
			}
		case *ast.IfStmt:
			s.truth(n.Cond)
		case *ast.ForStmt:
			s.truth(n.Cond)
		case *ast.BasicLit:
			s.number(n)
		case *ast.Ident:
			s.boolean(n)
		case ast.Stmt:
			s.statement(n, results)
		}
		return true
	})
}

// cases searches a switch or select. Coverage does not count what stands between
// "case" and the colon: it is taken for reached where the statement is. Parts may be nil.
func (s *sourceFile) cases(statement ast.Stmt, body *ast.BlockStmt, results *ast.FieldList, parts ...ast.Node) {
	for _, part := range parts {
		if part != nil {
			s.walk(part, results)
		}
	}
	outer := s.anchor
	for _, clause := range body.List {
		s.anchor = outer
		if !s.anchor.IsValid() {
			s.anchor = statement.Pos()
		}
		var inside []ast.Stmt
		switch clause := clause.(type) {
		case *ast.CaseClause:
			for _, expression := range clause.List {
				s.walk(expression, results)
			}
			inside = clause.Body
		case *ast.CommClause:
			if clause.Comm != nil {
				s.communication(clause.Comm, results)
			}
			inside = clause.Body
		}
		s.anchor = outer
		for _, in := range inside {
			s.walk(in, results)
		}
	}
}

// communication searches the statement of a select's case, which cannot be left out.
func (s *sourceFile) communication(statement ast.Stmt, results *ast.FieldList) {
	switch statement := statement.(type) {
	case *ast.SendStmt:
		s.walk(statement.Chan, results)
		s.walk(statement.Value, results)
	case *ast.ExprStmt:
		s.walk(statement.X, results)
	case *ast.AssignStmt:
		s.walk(statement.Rhs[0], results)
	}
}

func (s *sourceFile) operator(at token.Pos, operator token.Token) {
	for _, swap := range swaps(operator) {
		s.replace(at, at+token.Pos(len(operator.String())), swap.String(), swap.String())
	}
}

// truth negates a condition that is no comparison: those are negated by their operator.
func (s *sourceFile) truth(condition ast.Expr) {
	switch condition := condition.(type) {
	case *ast.UnaryExpr:
		if condition.Op == token.NOT {
			s.replace(condition.OpPos, condition.X.Pos(), "", "")
		}
	case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr, *ast.IndexExpr:
		s.replace(condition.Pos(), condition.Pos(), "!", "!")
	}
}

// number changes a whole number by one. Those in octal are modes of files, of which one
// change is enough.
func (s *sourceFile) number(literal *ast.BasicLit) {
	if literal.Kind != token.INT {
		return
	}
	value, err := strconv.ParseInt(literal.Value, 0, 64)
	if err != nil {
		return // larger than an int64: a mask
	}
	changed := []int64{value + 1}
	if value > 0 && !strings.HasPrefix(literal.Value, "0") {
		changed = append(changed, value-1)
	}
	for _, n := range changed {
		text := strconv.FormatInt(n, 10)
		s.replace(literal.Pos(), literal.End(), text, text)
	}
}

func (s *sourceFile) boolean(id *ast.Ident) {
	switch id.Name {
	case "true":
		s.replace(id.Pos(), id.End(), "false", "false")
	case "false":
		s.replace(id.Pos(), id.End(), "true", "true")
	}
}

// statement leaves out a statement, and drops the error that it returns.
func (s *sourceFile) statement(statement ast.Stmt, results *ast.FieldList) {
	switch statement := statement.(type) {
	case *ast.ExprStmt:
		if call, ok := statement.X.(*ast.CallExpr); ok && (isLog(call) || isLock(call)) {
			return
		}
		s.leaveOut(statement)
	case *ast.AssignStmt:
		s.operator(statement.TokPos, statement.Tok)
		if statement.Tok != token.DEFINE && s.source(statement.Lhs[0]) != "_" {
			s.leaveOut(statement)
		}
	case *ast.IncDecStmt:
		s.operator(statement.TokPos, statement.Tok)
		s.leaveOut(statement)
	case *ast.ReturnStmt:
		s.leaveOut(statement)
		s.dropError(statement, results)
	case *ast.SendStmt, *ast.GoStmt, *ast.BranchStmt:
		s.leaveOut(statement)
	}
}

// leaveOut keeps a statement from being run. Its variables stay used. Where a function would lack its
// last return, the mutant does not compile.
func (s *sourceFile) leaveOut(statement ast.Stmt) {
	s.replace(statement.Pos(), statement.End(), "if false { "+s.source(statement)+" }", "")
}

// dropError makes the error that is returned last nil; it is still worked out.
func (s *sourceFile) dropError(statement *ast.ReturnStmt, results *ast.FieldList) {
	if results == nil || len(statement.Results) != results.NumFields() {
		return
	}
	last := statement.Results[len(statement.Results)-1]
	text := s.source(last)
	if s.source(results.List[len(results.List)-1].Type) != "error" || text == "nil" {
		return
	}
	kept := s.source(statement)
	kept = kept[:len(kept)-len(text)] + "nil"
	s.replace(statement.Pos(), statement.End(), "{ _ = "+text+"; "+kept+" }", kept)
}

// isLog is whether a call only logs, which no test asks about.
func isLog(call *ast.CallExpr) bool {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return isLogName(function.Name)
	case *ast.SelectorExpr:
		name := function.Sel.Name
		return isLogName(name) || name == "Info" || name == "V" || name == "Error" && len(call.Args) > 0
	default:
		return false
	}
}

// isLogName is whether a function of that name only logs.
func isLogName(name string) bool {
	rest, ok := strings.CutPrefix(name, "log")
	return ok && (rest == "" || rest[0] >= 'A' && rest[0] <= 'Z')
}

// isLock is whether a call takes or releases a mutex: that is left to the race detector.
func isLock(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Lock", "Unlock", "RLock", "RUnlock":
		return true
	default:
		return false
	}
}
